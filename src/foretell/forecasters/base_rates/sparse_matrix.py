"""Matrices that are mostly zero or repeat their rows, and matrices side by side: what a fit multiplies vectors with."""

from collections.abc import Sequence
from typing import Union

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints, group_sums

Matrix = Union[Floats, "SparseMatrix", "RepeatedRows", "RepeatedColumns"]


@frozen(eq=False)
class SparseMatrix:
    """The numbers of a matrix that are not zero, sorted by row.

    >>> matrix = SparseMatrix.of(np.array([2.0, 3.0]), np.array([2, 0]), np.array([1, 0]), (3, 2))
    >>> (matrix @ np.array([10.0, 100.0])).tolist(), (matrix.T @ np.array([1.0, 1.0, 1.0])).tolist()
    ([30.0, 0.0, 200.0], [3.0, 2.0])
    """

    values: Floats
    row: Ints
    column: Ints
    shape: tuple[int, int]
    filled: Ints
    """Rows that are not empty."""
    first: Ints
    """The first number of each of these rows."""

    @classmethod
    def of(cls, values: Floats, row: Ints, column: Ints, shape: tuple[int, int]) -> "SparseMatrix":
        """Build it from numbers with their rows and columns, in any order; numbers in one place are added."""
        order = np.argsort(row, kind="stable")
        filled, first = np.unique(row[order], return_index=True)
        return cls(values=values[order], row=row[order], column=column[order], shape=shape, filled=filled, first=first)

    @property
    def T(self) -> "SparseMatrix":
        """The transposed matrix, sorted anew."""
        return SparseMatrix.of(self.values, self.column, self.row, (self.shape[1], self.shape[0]))

    def __matmul__(self, vector: Floats) -> Floats:
        """Multiply a vector."""
        product = np.zeros(self.shape[0])
        if len(self.values):
            terms = vector[self.column]
            terms *= self.values
            product[self.filled] = np.add.reduceat(terms, self.first)
        return product


@frozen(eq=False)
class RepeatedRows:
    """A matrix with few different rows.

    >>> matrix = RepeatedRows(rows=np.array([[1.0, 2.0], [0.0, 5.0]]), which=np.array([0, 1, 0]))
    >>> (matrix @ np.array([10.0, 1.0])).tolist(), (matrix.T @ np.array([1.0, 1.0, 1.0])).tolist()
    ([12.0, 5.0, 12.0], [2.0, 9.0])
    """

    rows: "Floats | SparseMatrix"
    which: Ints
    """For each row of the matrix, its number in `rows`."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return len(self.which), self.rows.shape[1]

    @property
    def T(self) -> "RepeatedColumns":
        """The transposed matrix."""
        return RepeatedColumns(columns=self.rows.T, which=self.which)

    def __matmul__(self, vector: Floats) -> Floats:
        """Multiply a vector."""
        return (self.rows @ vector)[self.which]


@frozen(eq=False)
class RepeatedColumns:
    """A matrix with few different columns."""

    columns: "Floats | SparseMatrix"
    which: Ints

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return self.columns.shape[0], len(self.which)

    @property
    def T(self) -> RepeatedRows:
        """The transposed matrix."""
        return RepeatedRows(rows=self.columns.T, which=self.which)

    def __matmul__(self, vector: Floats) -> Floats:
        """Multiply a vector."""
        return self.columns @ group_sums(self.which, vector, self.columns.shape[1])


class BlockRow:
    """Matrices with the same rows, side by side."""

    def __init__(self, blocks: Sequence[Matrix]) -> None:
        self.blocks = blocks
        self.ends = np.cumsum([block.shape[1] for block in blocks])
        self.shape = (blocks[0].shape[0], int(self.ends[-1]))

    @property
    def T(self) -> "BlockColumn":
        """The transposed matrix."""
        return BlockColumn([block.T for block in self.blocks])

    def __matmul__(self, vector: Floats) -> Floats:
        """Multiply a vector."""
        product = np.zeros(self.shape[0])
        for block, part in zip(self.blocks, np.split(vector, self.ends[:-1]), strict=True):
            product += block @ part
        return product


class BlockColumn:
    """Matrices with the same columns, one below the other."""

    def __init__(self, blocks: Sequence[Matrix]) -> None:
        self.blocks = blocks

    def __matmul__(self, vector: Floats) -> Floats:
        """Multiply a vector."""
        return np.concatenate([block @ vector for block in self.blocks])
