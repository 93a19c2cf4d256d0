/**
 * Line differences after Eugene W. Myers (http://www.xmailserver.org/diff2.pdf) with the bounded search of git's xdiff.
 *
 * The host renders patches with the Rust crate similar 3.2 (Apache-2.0, Copyright Armin Ronacher and contributors,
 * https://github.com/mitsuhiko/similar). Many scripts turn one file into another; this module follows the choices of that
 * crate, so that both render the same bytes. When the version of the crate changes, compare this module with it;
 * tests/conformance/vectors/patches.json reveals differences.
 */
import { reduce } from './reduce';
import { cleanUp, commonPrefix, commonSuffix, Script, type Change, type Lines } from './script';
import { trySmallSide } from './small';

export type { Change };

/** Whether a search may take a good split that is not proven to be shortest. */
type Mode = 'heuristic' | 'exact';

const MIN_COST = 256;
const MIN_SNAKE = 20;
const MIN_MAX_COST = 256;
const PROGRESS_FACTOR = 4;

/** Returns the ranges of equal and changed lines from `old` to `fresh`. */
export function lineChanges( old: Lines, fresh: Lines ): Change[] {
	const script = new Script();
	const prefix = commonPrefix( old, 0, old.length, fresh, 0, fresh.length );
	const suffix = commonSuffix( old, prefix, old.length, fresh, prefix, fresh.length );
	const oldEnd = old.length - suffix;
	const newEnd = fresh.length - suffix;
	if ( prefix > 0 ) {
		script.equal( 0, 0, prefix );
	}
	const reduced = reduce( old, prefix, oldEnd, fresh, prefix, newEnd );
	if ( reduced ) {
		const inner = new Script();
		search( inner, reduced.old, reduced.fresh );
		reduced.expand( inner, script );
	} else {
		new Search( script, old, fresh ).start( prefix, oldEnd, prefix, newEnd );
	}
	if ( suffix > 0 ) {
		script.equal( oldEnd, newEnd, suffix );
	}
	return cleanUp( script.steps, old, fresh );
}

/** Searches whole sequences, after their common start and end are split off. */
function search( script: Script, old: Lines, fresh: Lines ): void {
	const prefix = commonPrefix( old, 0, old.length, fresh, 0, fresh.length );
	const suffix = commonSuffix( old, prefix, old.length, fresh, prefix, fresh.length );
	if ( prefix > 0 ) {
		script.equal( 0, 0, prefix );
	}
	new Search( script, old, fresh ).start( prefix, old.length - suffix, prefix, fresh.length - suffix );
	if ( suffix > 0 ) {
		script.equal( old.length - suffix, fresh.length - suffix, suffix );
	}
}

interface Split {
	readonly old: number;
	readonly new: number;
	readonly left: Mode;
	readonly right: Mode;
}

interface Candidate {
	readonly old: number;
	readonly new: number;
	readonly progress: number;
	readonly forward: boolean;
}

/** Endpoints of the furthest reaching paths by diagonal; diagonals may be negative. */
class Endpoints {
	private readonly values: Int32Array;

	constructor( private readonly offset: number ) {
		this.values = new Int32Array( 2 * offset );
	}

	at( diagonal: number ): number {
		return this.values[ diagonal + this.offset ]!;
	}

	set( diagonal: number, value: number ): void {
		this.values[ diagonal + this.offset ] = value;
	}
}

function maxDistance( n: number, m: number ): number {
	return Math.ceil( ( n + m ) / 2 ) + 1;
}

class Search {
	private forward!: Endpoints;
	private backward!: Endpoints;

	constructor(
		private readonly script: Script,
		private readonly old: Lines,
		private readonly fresh: Lines
	) {}

	start( oldStart: number, oldEnd: number, newStart: number, newEnd: number ): void {
		if ( oldStart === oldEnd && newStart === newEnd ) {
			return;
		}
		if ( oldStart === oldEnd ) {
			this.script.insert( oldStart, newStart, newEnd - newStart );
		} else if ( newStart === newEnd ) {
			this.script.delete( oldStart, oldEnd - oldStart, newStart );
		} else {
			const most = maxDistance( oldEnd - oldStart, newEnd - newStart );
			this.forward = new Endpoints( most );
			this.backward = new Endpoints( most );
			this.conquer( oldStart, oldEnd, newStart, newEnd, 'heuristic' );
		}
	}

	private conquer( oldStart: number, oldEnd: number, newStart: number, newEnd: number, mode: Mode ): void {
		const { script, old, fresh } = this;
		const prefix = commonPrefix( old, oldStart, oldEnd, fresh, newStart, newEnd );
		if ( prefix > 0 ) {
			script.equal( oldStart, newStart, prefix );
		}
		oldStart += prefix;
		newStart += prefix;
		const suffix = commonSuffix( old, oldStart, oldEnd, fresh, newStart, newEnd );
		oldEnd -= suffix;
		newEnd -= suffix;
		while ( oldStart < oldEnd && newStart < newEnd ) {
			const anchor = this.frontAnchor( oldStart, oldEnd, newStart, newEnd );
			if ( ! anchor ) {
				break;
			}
			oldStart += anchor[ 0 ];
			newStart += anchor[ 1 ];
		}
		if ( oldStart === oldEnd && newStart === newEnd ) {
			// Nothing is left between start and end.
		} else if ( newStart === newEnd ) {
			script.delete( oldStart, oldEnd - oldStart, newStart );
		} else if ( oldStart === oldEnd ) {
			script.insert( oldStart, newStart, newEnd - newStart );
		} else if ( ! trySmallSide( script, old, oldStart, oldEnd, fresh, newStart, newEnd ) ) {
			const split = this.middleSnake( oldStart, oldEnd, newStart, newEnd, mode );
			if ( split ) {
				this.conquer( oldStart, split.old, newStart, split.new, split.left );
				this.conquer( split.old, oldEnd, split.new, newEnd, split.right );
			} else {
				script.delete( oldStart, oldEnd - oldStart, newStart );
				script.insert( oldStart, newStart, newEnd - newStart );
			}
		}
		if ( suffix > 0 ) {
			script.equal( oldEnd, newEnd, suffix );
		}
	}

	/** Emits a short insertion or deletion at the start of the larger side when a long equal run follows it. */
	private frontAnchor( oldStart: number, oldEnd: number, newStart: number, newEnd: number ): readonly [ number, number ] | null {
		const least = 96;
		const oldLength = oldEnd - oldStart;
		const newLength = newEnd - newStart;
		if ( oldLength <= least || newLength <= least || Math.max( oldLength, newLength ) < 2 * Math.min( oldLength, newLength ) ) {
			return null;
		}
		const inserts = newLength > oldLength;
		let best: { skip: number; common: number } | null = null;
		for ( let skip = 1; skip <= 4; skip++ ) {
			const oldAt = oldStart + ( inserts ? 0 : skip );
			const newAt = newStart + ( inserts ? skip : 0 );
			const common = commonPrefix( this.old, oldAt, oldEnd, this.fresh, newAt, newEnd );
			if ( common >= 8 * least ) {
				best = { skip, common };
				break;
			}
			if ( common >= least && ( ! best || common > best.common ) ) {
				best = { skip, common };
			}
		}
		if ( ! best ) {
			return null;
		}
		const { skip, common } = best;
		if ( inserts ) {
			this.script.insert( oldStart, newStart, skip );
			this.script.equal( oldStart, newStart + skip, common );
			return [ common, skip + common ];
		}
		this.script.delete( oldStart, skip, newStart );
		this.script.equal( oldStart + skip, newStart, common );
		return [ skip + common, common ];
	}

	/** Finds a point on a short path through the middle of the edit graph. */
	private middleSnake( oldStart: number, oldEnd: number, newStart: number, newEnd: number, mode: Mode ): Split | null {
		const { old, fresh, forward, backward } = this;
		const n = oldEnd - oldStart;
		const m = newEnd - newStart;
		const delta = n - m;
		const odd = 0 !== ( delta & 1 );
		const heuristic = 'heuristic' === mode;
		const maxCost = heuristic ? Math.max( Math.floor( Math.sqrt( n + m ) ), MIN_MAX_COST ) : Infinity;
		forward.set( 1, 0 );
		backward.set( 1, 0 );
		const exact = ( x: number, y: number ): Split => ( { old: oldStart + x, new: newStart + y, left: 'exact', right: 'exact' } );
		const split = ( found: Candidate ): Split => ( {
			old: oldStart + found.old,
			new: newStart + found.new,
			left: found.forward ? 'exact' : 'heuristic',
			right: found.forward ? 'heuristic' : 'exact',
		} );
		const most = maxDistance( n, m );
		for ( let d = 0; d < most; d++ ) {
			let good: Candidate | null = null;
			let furthest: Candidate | null = null;
			let nearest: Candidate | null = null;
			const atLimit = heuristic && d >= maxCost;
			const expensive = heuristic && d > MIN_COST;
			for ( let k = d; k >= -d; k -= 2 ) {
				const x0 = k === -d || ( k !== d && forward.at( k - 1 ) < forward.at( k + 1 ) ) ? forward.at( k + 1 ) : forward.at( k - 1 ) + 1;
				const y0 = x0 - k;
				let x = x0;
				// A path may leave the graph; y is then negative or too large.
				if ( x < n && y0 >= 0 && y0 < m ) {
					x += commonPrefix( old, oldStart + x, oldEnd, fresh, newStart + y0, newEnd );
				}
				forward.set( k, x );
				if ( odd && Math.abs( k - delta ) <= d - 1 && x + backward.at( delta - k ) >= n ) {
					return exact( x0, y0 );
				}
				if ( atLimit ) {
					const point = clamp( x, k, n, m );
					if ( point && interior( point[ 0 ], point[ 1 ], n, m ) ) {
						furthest = better( furthest, { old: point[ 0 ], new: point[ 1 ], progress: point[ 0 ] + point[ 1 ], forward: true } );
					}
				}
				if ( expensive && x - x0 >= MIN_SNAKE && x < n && y0 >= 0 && y0 < m ) {
					const progress = Math.max( 0, x + y0 - Math.abs( k ) );
					if ( progress > PROGRESS_FACTOR * d && interior( x0, y0, n, m ) ) {
						good = better( good, { old: x0, new: y0, progress, forward: true } );
					}
				}
			}
			for ( let k = d; k >= -d; k -= 2 ) {
				const x0 = k === -d || ( k !== d && backward.at( k - 1 ) < backward.at( k + 1 ) ) ? backward.at( k + 1 ) : backward.at( k - 1 ) + 1;
				let x = x0;
				let y = x0 - k;
				if ( x < n && y >= 0 && y < m ) {
					const advance = commonSuffix( old, oldStart, oldEnd - x, fresh, newStart, newEnd - y );
					x += advance;
					y += advance;
				}
				backward.set( k, x );
				if ( ! odd && Math.abs( k - delta ) <= d && x + forward.at( delta - k ) >= n ) {
					return exact( n - x, m - y );
				}
				if ( atLimit ) {
					const point = clamp( x, k, n, m );
					if ( point && interior( n - point[ 0 ], m - point[ 1 ], n, m ) ) {
						nearest = better( nearest, { old: n - point[ 0 ], new: m - point[ 1 ], progress: point[ 0 ] + point[ 1 ], forward: false } );
					}
				}
				if ( expensive && x - x0 >= MIN_SNAKE && x < n && y >= 0 && y < m ) {
					const progress = Math.max( 0, x + y - Math.abs( k ) );
					if ( progress > PROGRESS_FACTOR * d ) {
						good = better( good, { old: n - x, new: m - y, progress, forward: false } );
					}
				}
			}
			if ( good ) {
				return split( good );
			}
			if ( atLimit ) {
				const chosen = furthest && nearest ? ( furthest.progress > nearest.progress ? furthest : nearest ) : furthest ?? nearest;
				return chosen ? split( chosen ) : null;
			}
		}
		return null;
	}
}

function better( best: Candidate | null, candidate: Candidate ): Candidate {
	return ! best || candidate.progress > best.progress ? candidate : best;
}

function interior( x: number, y: number, n: number, m: number ): boolean {
	return x <= n && y <= m && ( 0 !== x || 0 !== y ) && ( x !== n || y !== m );
}

/** Returns the point of a diagonal inside of the graph that is nearest to `x`. */
function clamp( x: number, diagonal: number, n: number, m: number ): readonly [ number, number ] | null {
	if ( diagonal < 0 && -diagonal > m ) {
		return null;
	}
	const least = Math.max( diagonal, 0 );
	const most = Math.min( n, m + diagonal );
	if ( least > most ) {
		return null;
	}
	const inside = Math.min( Math.max( x, least ), most );
	return [ inside, inside - diagonal ];
}
