/**
 * Detection of renamed regular files. ext/core/artifacts/src/patch/rename.rs is the same in Rust.
 */
import { compare, key, lines } from '../bytes';
import { sha256 } from '../digest/digests';
import type { Entry } from './entry';

/** Minimum similarity of a deleted and an added file that count as a rename, in per cent. */
const THRESHOLD = 50;
/** Maximum number of pairs of unequal files whose similarity is computed. */
const MAX_PAIRS = 10_000;

/** A deleted path and the added path that replaces it. */
export interface Rename {
	readonly from: Uint8Array;
	readonly to: Uint8Array;
	/** Bytes of equal lines in per cent of the larger file, from 50 to 100. */
	readonly similarity: number;
}

interface Candidate {
	readonly path: Uint8Array;
	readonly bytes: Uint8Array;
}

/** Pairs deleted with added regular files: equal contents first, then contents of at least 50 % similarity. */
export async function findRenames( entries: readonly Entry[] ): Promise< Rename[] > {
	const gone: Candidate[] = [];
	const made: Candidate[] = [];
	for ( const { path, before, after } of entries ) {
		if ( before && ! after && 'file' === before.type && before.bytes.length > 0 ) {
			gone.push( { path, bytes: before.bytes } );
		} else if ( after && ! before && 'file' === after.type && after.bytes.length > 0 ) {
			made.push( { path, bytes: after.bytes } );
		}
	}
	gone.sort( ( a, b ) => compare( a.path, b.path ) );
	made.sort( ( a, b ) => compare( a.path, b.path ) );

	const renames: Rename[] = [];
	const byHash = new Map< string, Candidate[] >();
	for ( const file of gone ) {
		const hash = await sha256( file.bytes );
		byHash.set( hash, [ ...( byHash.get( hash ) ?? [] ), file ] );
	}
	const used = new Set< Candidate >();
	for ( const file of made ) {
		const from = byHash.get( await sha256( file.bytes ) )?.shift();
		if ( from ) {
			used.add( from ).add( file );
			renames.push( { from: from.path, to: file.path, similarity: 100 } );
		}
	}
	const leftGone = gone.filter( ( file ) => ! used.has( file ) );
	const leftMade = made.filter( ( file ) => ! used.has( file ) );
	if ( leftGone.length * leftMade.length <= MAX_PAIRS ) {
		renames.push( ...similar( leftGone, leftMade ) );
	}
	return renames.sort( ( a, b ) => compare( a.to, b.to ) );
}

function similar( gone: readonly Candidate[], made: readonly Candidate[] ): Rename[] {
	const counted = gone.map( ( file ) => ( { file, lines: count( file.bytes ) } ) );
	const pairs: Array< { score: number; from: Candidate; to: Candidate } > = [];
	for ( const to of made ) {
		const fresh = count( to.bytes );
		for ( const { file: from, lines: old } of counted ) {
			let common = 0;
			for ( const [ line, times ] of fresh ) {
				common += line.length * Math.min( old.get( line ) ?? 0, times );
			}
			const score = Math.floor( ( common * 100 ) / Math.max( to.bytes.length, from.bytes.length ) );
			if ( score >= THRESHOLD ) {
				// Unequal contents never have 100 % similarity.
				pairs.push( { score: Math.min( score, 99 ), from, to } );
			}
		}
	}
	pairs.sort( ( a, b ) => b.score - a.score || compare( a.from.path, b.from.path ) || compare( a.to.path, b.to.path ) );
	const used = new Set< Candidate >();
	const renames: Rename[] = [];
	for ( const { score, from, to } of pairs ) {
		if ( ! used.has( from ) && ! used.has( to ) ) {
			used.add( from ).add( to );
			renames.push( { from: from.path, to: to.path, similarity: score } );
		}
	}
	return renames;
}

/** Returns each different line with the number of its occurrences. One character of a line stands for one byte. */
function count( bytes: Uint8Array ): Map< string, number > {
	const counts = new Map< string, number >();
	for ( const line of lines( bytes ) ) {
		const name = key( line );
		counts.set( name, ( counts.get( name ) ?? 0 ) + 1 );
	}
	return counts;
}
