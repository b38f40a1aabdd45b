// Runs the operations of a tree (see circuit.py) in a web page: every result, in order, equal to Python's to the last bit.
// `forced` holds results by their place that stand whatever their operation says.
export function run(ops, inputs, forced = {}) {
  const v = [];
  for (const [op, a, b, c] of ops) {
    if (v.length in forced) v.push(forced[v.length]);
    else if (op === "in") v.push(inputs[a]);
    else if (op === "lin") v.push(b.reduce((sum, [i, w]) => sum + w * v[i], a));
    else if (op === "mul") v.push(a.slice(1).reduce((all, i) => all * v[i], v[a[0]]));
    else if (op === "not") v.push(1 - v[a]);
    else if (op === "mix") v.push(v[a] * v[b] + (1 - v[a]) * v[c]);
    else v.push(Math.min(Math.max(v[a], 0), 1));
  }
  return v;
}
