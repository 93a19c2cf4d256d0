/**
 * Leaves lines without a useful counterpart out of the search of large, different ranges (see myers.ts).
 */
import { Script, type Lines } from './script';

const MIN_LENGTH = 512;
const MIN_WORK = 128 * 1024;
const BOUNDARY_PROBE = 8;
const SCAN_WINDOW = 100;
const CONFUSING_RATIO = 4;
const MAX_FREQUENCY = 1024;
const NO_MATCH = -1;

type Action = 'discard' | 'keep' | 'investigate';

/** The lines that take part in the search, and the way back from them to the ranges. */
export interface Reduced {
	readonly old: Lines;
	readonly fresh: Lines;
	/** Emits to `script` what a search of the reduced lines found. */
	expand( found: Script, script: Script ): void;
}

/** Returns the reduced ranges, or null when they are searched whole. */
export function reduce( old: Lines, oldStart: number, oldEnd: number, fresh: Lines, newStart: number, newEnd: number ): Reduced | null {
	if ( ! isWorthwhile( old, oldStart, oldEnd, fresh, newStart, newEnd ) ) {
		return null;
	}
	const ids = new Map< number, number >();
	const oldIds = Array.from( old.subarray( oldStart, oldEnd ), ( line ) => {
		const id = ids.get( line ) ?? ids.size;
		ids.set( line, id );
		return id;
	} );
	const newIds = Array.from( fresh.subarray( newStart, newEnd ), ( line ) => ids.get( line ) ?? NO_MATCH );
	const oldKept = kept( oldIds, counts( newIds, ids.size ) );
	const newKept = kept( newIds, counts( oldIds, ids.size ) );
	if ( oldKept.length === oldIds.length && newKept.length === newIds.length ) {
		return null;
	}
	return {
		old: Int32Array.from( oldKept, ( index ) => oldIds[ index ]! ),
		fresh: Int32Array.from( newKept, ( index ) => newIds[ index ]! ),
		expand( found, script ) {
			let oldAt = oldStart;
			let newAt = newStart;
			const gap = ( oldNext: number, newNext: number ) => {
				if ( oldAt < oldNext ) {
					script.delete( oldAt, oldNext - oldAt, newAt );
					oldAt = oldNext;
				}
				if ( newAt < newNext ) {
					script.insert( oldAt, newAt, newNext - newAt );
					newAt = newNext;
				}
			};
			// Only equal lines are anchors. All between them, reduced or not, is one gap.
			for ( const step of found.steps ) {
				for ( let offset = 0; 'equal' === step.kind && offset < step.oldLength; ) {
					const oldAnchor = oldStart + oldKept[ step.old + offset ]!;
					const newAnchor = newStart + newKept[ step.new + offset ]!;
					gap( oldAnchor, newAnchor );
					let length = 1;
					while (
						offset + length < step.oldLength &&
						oldStart + oldKept[ step.old + offset + length ]! === oldAnchor + length &&
						newStart + newKept[ step.new + offset + length ]! === newAnchor + length
					) {
						length += 1;
					}
					script.equal( oldAnchor, newAnchor, length );
					oldAt = oldAnchor + length;
					newAt = newAnchor + length;
					offset += length;
				}
			}
			gap( oldEnd, newEnd );
		},
	};
}

/** Returns whether both ranges are large and no line near one of their ends shows a simple shift. */
function isWorthwhile( old: Lines, oldStart: number, oldEnd: number, fresh: Lines, newStart: number, newEnd: number ): boolean {
	const oldLength = oldEnd - oldStart;
	const newLength = newEnd - newStart;
	if ( oldLength < MIN_LENGTH || newLength < MIN_LENGTH || oldLength * newLength < MIN_WORK ) {
		return false;
	}
	for ( let skip = 0; skip < Math.min( oldLength, newLength, BOUNDARY_PROBE + 1 ); skip++ ) {
		if (
			fresh[ newStart + skip ] === old[ oldStart ] ||
			fresh[ newStart ] === old[ oldStart + skip ] ||
			fresh[ newEnd - 1 - skip ] === old[ oldEnd - 1 ] ||
			fresh[ newEnd - 1 ] === old[ oldEnd - 1 - skip ]
		) {
			return false;
		}
	}
	return true;
}

function counts( ids: readonly number[], size: number ): Int32Array {
	const out = new Int32Array( size );
	ids.forEach( ( id ) => {
		if ( NO_MATCH !== id ) {
			out[ id ]! += 1;
		}
	} );
	return out;
}

/** Returns the positions of the lines that take part in the search. */
function kept( ids: readonly number[], opposite: Int32Array ): number[] {
	const limit = Math.min( Math.max( Math.floor( Math.sqrt( ids.length ) ), 1 ), MAX_FREQUENCY );
	const actions = ids.map( ( id ): Action => {
		const count = NO_MATCH === id ? 0 : opposite[ id ]!;
		return 0 === count ? 'discard' : count < limit ? 'keep' : 'investigate';
	} );
	const out: number[] = [];
	actions.forEach( ( action, index ) => {
		if ( 'keep' === action || ( 'investigate' === action && ! isConfusing( actions, index ) ) ) {
			out.push( index );
		}
	} );
	return out;
}

/** Returns whether a frequent line stands between lines without a counterpart on both sides. */
function isConfusing( actions: readonly Action[], index: number ): boolean {
	const left = scan( actions, index, -1 );
	if ( 0 === left.discards ) {
		return false;
	}
	const right = scan( actions, index, 1 );
	if ( 0 === right.discards ) {
		return false;
	}
	const investigates = left.investigates + right.investigates + 1;
	return investigates * CONFUSING_RATIO < investigates + left.discards + right.discards;
}

function scan( actions: readonly Action[], index: number, step: 1 | -1 ): { discards: number; investigates: number } {
	let discards = 0;
	let investigates = 0;
	for ( let count = 1; count <= SCAN_WINDOW; count++ ) {
		const action = actions[ index + step * count ];
		if ( 'discard' === action ) {
			discards += 1;
		} else if ( 'investigate' === action ) {
			investigates += 1;
		} else {
			break;
		}
	}
	return { discards, investigates };
}
