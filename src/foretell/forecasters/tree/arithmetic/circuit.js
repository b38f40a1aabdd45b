// Runs the operations of a tree (see circuit.py) in a web page and returns all results in order, bit for bit as in Python.
// `forced` maps positions to values that replace the results of their operations.
export function run(ops, inputs, forced = {}) {
  const v = [];
  for (const [op, a, b, c] of ops) {
    if (v.length in forced) v.push(forced[v.length]);
    else if (op === "in") v.push(inputs[a]);
    else if (op === "lin") v.push(b.reduce((sum, [i, w]) => sum + w * v[i], a));
    else if (op === "mul") v.push(a.slice(1).reduce((all, i) => all * v[i], v[a[0]]));
    else if (op === "not") v.push(1 - v[a]);
    else if (op === "mix") v.push(v[a] * v[b] + (1 - v[a]) * v[c]);
    else if (op === "odds") v.push(v[a] * b / (1 - v[a] + b * v[a]));
    else v.push(Math.min(Math.max(v[a], 0), 1));
  }
  return v;
}

// The inputs after one is set: those that it excludes share what is left to them, as in Python.
export function withInput(circuit, inputs, id, p) {
  const after = { ...inputs, [id]: p };
  for (const group of circuit.exclusive) {
    const before = inputs[id] < 1 ? inputs : circuit.inputs;
    if (!group.includes(id) || before[id] >= 1) continue;
    const share = (1 - p) / (1 - before[id]);
    for (const other of group) if (other !== id) after[other] = before[other] * share;
  }
  return after;
}
