/**
 * Edit scripts: sequences of equal, deleted and inserted ranges of lines, and their clean-up.
 *
 * The clean-up follows `Compact` and `Replace` of the Rust crate similar 3.2 (see myers.ts).
 */

/** Kind of a range; `replace` only appears in the result. */
export type Kind = 'equal' | 'delete' | 'insert' | 'replace';

/** A range of old lines and a range of new lines; one of them is empty unless the kind is `equal` or `replace`. */
export interface Change {
	readonly kind: Kind;
	readonly old: number;
	readonly oldLength: number;
	readonly new: number;
	readonly newLength: number;
}

type Step = { -readonly [ Name in keyof Change ]: Change[ Name ] };

/** Lines as numbers; equal lines have equal numbers. */
export type Lines = Int32Array;

/** Collects the ranges that a search emits. */
export class Script {
	readonly steps: Step[] = [];

	equal( old: number, fresh: number, length: number ): void {
		this.steps.push( { kind: 'equal', old, oldLength: length, new: fresh, newLength: length } );
	}

	delete( old: number, length: number, fresh: number ): void {
		this.steps.push( { kind: 'delete', old, oldLength: length, new: fresh, newLength: 0 } );
	}

	insert( old: number, fresh: number, length: number ): void {
		this.steps.push( { kind: 'insert', old, oldLength: 0, new: fresh, newLength: length } );
	}
}

/** Returns the length of the common start of two ranges. */
export function commonPrefix( a: Lines, aStart: number, aEnd: number, b: Lines, bStart: number, bEnd: number ): number {
	const most = Math.min( aEnd - aStart, bEnd - bStart );
	let length = 0;
	while ( length < most && a[ aStart + length ] === b[ bStart + length ] ) {
		length += 1;
	}
	return length;
}

/** Returns the length of the common end of two ranges. */
export function commonSuffix( a: Lines, aStart: number, aEnd: number, b: Lines, bStart: number, bEnd: number ): number {
	const most = Math.min( aEnd - aStart, bEnd - bStart );
	let length = 0;
	while ( length < most && a[ aEnd - 1 - length ] === b[ bEnd - 1 - length ] ) {
		length += 1;
	}
	return length;
}

/** Moves deletions and insertions together where the lines allow it, and joins adjacent ranges. */
export function cleanUp( steps: Step[], old: Lines, fresh: Lines ): Change[] {
	for ( const kind of [ 'delete', 'insert' ] as const ) {
		for ( let at = 0; at < steps.length; at++ ) {
			if ( kind === steps[ at ]!.kind ) {
				at = shiftUp( steps, old, fresh, at );
				at = shiftDown( steps, old, fresh, at );
			}
		}
	}
	normalize( steps );
	return joined( steps );
}

function isEmpty( step: Step ): boolean {
	return 0 === step.oldLength && 0 === step.newLength;
}

/** Moves a range by `by` lines; a negative number moves it towards the start. */
function shift( step: Step, by: number ): void {
	step.old += by;
	step.new += by;
}

/** Changes the length of a range on the sides that it consumes. */
function grow( step: Step, by: number ): void {
	if ( 'insert' !== step.kind ) {
		step.oldLength += by;
	}
	if ( 'delete' !== step.kind ) {
		step.newLength += by;
	}
}

/** Swaps a deletion and an insertion and corrects their positions, so that the script stays contiguous. */
function swap( steps: Step[], at: number ): void {
	const left = steps[ at ]!;
	const right = steps[ at + 1 ]!;
	const oldStart = left.old;
	const newStart = left.new;
	const oldEnd = right.old + right.oldLength;
	const newEnd = right.new + right.newLength;
	steps[ at ] = right;
	steps[ at + 1 ] = left;
	if ( 'insert' === right.kind ) {
		right.old = oldStart;
	} else {
		right.new = newStart;
	}
	if ( 'insert' === left.kind ) {
		left.old = oldEnd;
	} else {
		left.new = newEnd;
	}
}

function shiftUp( steps: Step[], old: Lines, fresh: Lines, at: number ): number {
	while ( at > 0 ) {
		const step = steps[ at ]!;
		const previous = steps[ at - 1 ]!;
		if ( 'equal' !== previous.kind ) {
			if ( previous.kind === step.kind ) {
				grow( previous, 'insert' === step.kind ? step.newLength : step.oldLength );
				steps.splice( at, 1 );
			} else {
				swap( steps, at - 1 );
			}
			at -= 1;
			continue;
		}
		// A deletion only moves when that joins it with another one.
		if ( 'delete' === step.kind && 'delete' !== steps[ at - 2 ]?.kind ) {
			break;
		}
		const length =
			'insert' === step.kind
				? commonSuffix( old, previous.old, previous.old + previous.oldLength, fresh, step.new, step.new + step.newLength )
				: commonSuffix( old, step.old, step.old + step.oldLength, fresh, previous.new, previous.new + previous.newLength );
		if ( length > 0 ) {
			const next = steps[ at + 1 ];
			if ( 'equal' === next?.kind ) {
				shift( next, -length );
				grow( next, length );
			} else {
				const oldEnd = 'insert' === step.kind ? previous.old + previous.oldLength : step.old + step.oldLength;
				const newEnd = 'insert' === step.kind ? step.new + step.newLength : previous.new + previous.newLength;
				steps.splice( at + 1, 0, { kind: 'equal', old: oldEnd - length, oldLength: length, new: newEnd - length, newLength: length } );
			}
			shift( step, -length );
			grow( previous, -length );
		}
		if ( isEmpty( previous ) ) {
			steps.splice( at - 1, 1 );
			at -= 1;
		} else if ( 0 === length ) {
			break;
		}
	}
	return at;
}

function shiftDown( steps: Step[], old: Lines, fresh: Lines, at: number ): number {
	while ( at + 1 < steps.length ) {
		const step = steps[ at ]!;
		const next = steps[ at + 1 ]!;
		if ( 'equal' !== next.kind ) {
			if ( next.kind === step.kind ) {
				grow( step, 'insert' === next.kind ? next.newLength : next.oldLength );
				steps.splice( at + 1, 1 );
			} else {
				swap( steps, at );
				at += 1;
			}
			continue;
		}
		if ( 'delete' === step.kind && 'delete' !== steps[ at + 2 ]?.kind ) {
			break;
		}
		const length =
			'insert' === step.kind
				? commonPrefix( old, next.old, next.old + next.oldLength, fresh, step.new, step.new + step.newLength )
				: commonPrefix( old, step.old, step.old + step.oldLength, fresh, next.new, next.new + next.newLength );
		if ( length > 0 ) {
			const previous = steps[ at - 1 ];
			if ( 'equal' === previous?.kind ) {
				grow( previous, length );
			} else {
				const start = 'insert' === step.kind ? next.old : step.old;
				steps.splice( at, 0, { kind: 'equal', old: start, oldLength: length, new: step.new, newLength: length } );
				at += 1;
			}
			shift( step, length );
			shift( next, length );
			grow( next, -length );
		}
		if ( isEmpty( next ) ) {
			steps.splice( at + 1, 1 );
		} else if ( 0 === length ) {
			break;
		}
	}
	return at;
}

/** Sets the position of each range on the side that it does not consume. */
function normalize( steps: Step[] ): void {
	let old = steps[ 0 ]?.old ?? 0;
	let fresh = steps[ 0 ]?.new ?? 0;
	for ( const step of steps ) {
		if ( 'delete' === step.kind ) {
			step.new = fresh;
		} else if ( 'insert' === step.kind ) {
			step.old = old;
		}
		old = step.old + step.oldLength;
		fresh = step.new + step.newLength;
	}
}

/** Joins ranges: equal ones with equal ones, and the deletions and insertions between them to one replacement. */
function joined( steps: readonly Step[] ): Change[] {
	const out: Change[] = [];
	let equal: Step | null = null;
	let deletion: Step | null = null;
	let insertion: Step | null = null;
	const flushEqual = () => {
		if ( equal ) {
			out.push( equal );
		}
		equal = null;
	};
	const flushChange = () => {
		if ( deletion && insertion ) {
			out.push( { kind: 'replace', old: deletion.old, oldLength: deletion.oldLength, new: insertion.new, newLength: insertion.newLength } );
		} else if ( deletion ?? insertion ) {
			out.push( ( deletion ?? insertion )! );
		}
		deletion = null;
		insertion = null;
	};
	for ( const step of steps ) {
		if ( 'equal' === step.kind ) {
			flushChange();
			equal = append( equal, step );
		} else if ( 'delete' === step.kind ) {
			flushEqual();
			deletion = append( deletion, step );
		} else {
			flushEqual();
			insertion = append( insertion, step );
		}
	}
	flushEqual();
	flushChange();
	return out;
}

function append( before: Step | null, step: Step ): Step {
	return before ? { ...before, oldLength: before.oldLength + step.oldLength, newLength: before.newLength + step.newLength } : { ...step };
}
