/**
 * Exact differences of two ranges, one of which has at most 64 lines and the other at least 512: a longest common
 * subsequence by dynamic programming (see myers.ts).
 */
import type { Lines, Script } from './script';

const MAX_SMALL = 64;
const MIN_LARGE = 512;
const MAX_WORK = 64_000_000;

/** Emits the changes of two ranges and returns true; returns false when their sizes are not of this kind. */
export function trySmallSide( script: Script, old: Lines, oldStart: number, oldEnd: number, fresh: Lines, newStart: number, newEnd: number ): boolean {
	const oldLength = oldEnd - oldStart;
	const newLength = newEnd - newStart;
	const small = Math.min( oldLength, newLength );
	if ( 0 === small || small > MAX_SMALL || Math.max( oldLength, newLength ) < MIN_LARGE || oldLength * newLength > MAX_WORK ) {
		return false;
	}
	if ( oldLength <= newLength ) {
		emit( old.subarray( oldStart, oldEnd ), fresh.subarray( newStart, newEnd ), {
			equal: ( i, j, length ) => script.equal( oldStart + i, newStart + j, length ),
			rows: ( i, j, length ) => script.delete( oldStart + i, length, newStart + j ),
			columns: ( i, j, length ) => script.insert( oldStart + i, newStart + j, length ),
			rowsFirst: true,
		} );
	} else {
		emit( fresh.subarray( newStart, newEnd ), old.subarray( oldStart, oldEnd ), {
			equal: ( i, j, length ) => script.equal( oldStart + j, newStart + i, length ),
			rows: ( i, j, length ) => script.insert( oldStart + j, newStart + i, length ),
			columns: ( i, j, length ) => script.delete( oldStart + j, length, newStart + i ),
			rowsFirst: false,
		} );
	}
	return true;
}

/** Receives runs of equal lines, of rows (unmatched lines of the small side) and of columns (of the large side): row, column, length. */
interface Target {
	readonly equal: ( row: number, column: number, length: number ) => void;
	readonly rows: ( row: number, column: number, length: number ) => void;
	readonly columns: ( row: number, column: number, length: number ) => void;
	/** Whether rows left at the end come before columns: rows are then deletions, which come first. */
	readonly rowsFirst: boolean;
}

function emit( rows: Lines, columns: Lines, target: Target ): void {
	const n = rows.length;
	const m = columns.length;
	const width = m + 1;
	// The longest common subsequence of rows from i and columns from j. It has at most 64 lines, so a byte holds it.
	const longest = new Uint8Array( ( n + 1 ) * width );
	for ( let i = n - 1; i >= 0; i-- ) {
		for ( let j = m - 1; j >= 0; j-- ) {
			longest[ i * width + j ] =
				columns[ j ] === rows[ i ] ? longest[ ( i + 1 ) * width + j + 1 ]! + 1 : Math.max( longest[ ( i + 1 ) * width + j ]!, longest[ i * width + j + 1 ]! );
		}
	}
	const matches = ( i: number, j: number ) => columns[ j ] === rows[ i ] && longest[ i * width + j ] === longest[ ( i + 1 ) * width + j + 1 ]! + 1;
	const prefersRow = ( i: number, j: number ) => longest[ ( i + 1 ) * width + j ]! >= longest[ i * width + j + 1 ]!;
	let i = 0;
	let j = 0;
	while ( i < n && j < m ) {
		const startRow = i;
		const startColumn = j;
		if ( matches( i, j ) ) {
			while ( i < n && j < m && matches( i, j ) ) {
				i += 1;
				j += 1;
			}
			target.equal( startRow, startColumn, i - startRow );
		} else if ( prefersRow( i, j ) ) {
			while ( i < n && ! matches( i, j ) && prefersRow( i, j ) ) {
				i += 1;
			}
			target.rows( startRow, startColumn, i - startRow );
		} else {
			while ( j < m && ! matches( i, j ) && ! prefersRow( i, j ) ) {
				j += 1;
			}
			target.columns( startRow, startColumn, j - startColumn );
		}
	}
	const restOfRows = () => i < n && target.rows( i, j, n - i );
	const restOfColumns = () => j < m && target.columns( i, j, m - j );
	if ( target.rowsFirst ) {
		restOfRows();
		restOfColumns();
	} else {
		restOfColumns();
		restOfRows();
	}
}
