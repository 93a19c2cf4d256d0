/**
 * Huffman codes of a deflate block, assigned exactly as miniz does it (see deflate.ts).
 */

/** Lengths of the codes of all symbols, and the codes with their bits reversed. */
export interface Codes {
	readonly lengths: Uint8Array;
	readonly codes: Uint16Array;
}

interface Symbol {
	key: number;
	readonly index: number;
}

/** Returns codes for the symbols with these counts; no code is longer than `limit` bits. */
export function codesFor( counts: Uint16Array, limit: number ): Codes {
	const symbols: Symbol[] = [];
	counts.forEach( ( count, index ) => {
		if ( 0 !== count ) {
			symbols.push( { key: count, index } );
		}
	} );
	// A stable sort: symbols with equal counts keep their order.
	symbols.sort( ( a, b ) => a.key - b.key );
	minimumRedundancy( symbols );
	const numbers = new Int32Array( 300 );
	for ( const symbol of symbols ) {
		numbers[ symbol.key ]! += 1;
	}
	enforceLimit( numbers, symbols.length, limit );
	const lengths = new Uint8Array( counts.length );
	let last = symbols.length;
	for ( let length = 1; length <= limit; length++ ) {
		const first = last - numbers[ length ]!;
		for ( const symbol of symbols.slice( first, last ) ) {
			lengths[ symbol.index ] = length;
		}
		last = first;
	}
	return codesOf( lengths, limit );
}

/** Returns the canonical codes for these lengths. */
export function codesOf( lengths: Uint8Array, limit: number ): Codes {
	const next = new Uint32Array( limit + 2 );
	const numbers = new Uint32Array( limit + 2 );
	for ( const length of lengths ) {
		numbers[ length ]! += 1;
	}
	for ( let length = 2; length <= limit; length++ ) {
		next[ length ] = ( next[ length - 1 ]! + numbers[ length - 1 ]! ) << 1;
	}
	const codes = new Uint16Array( lengths.length );
	lengths.forEach( ( length, symbol ) => {
		if ( 0 !== length ) {
			codes[ symbol ] = reversed( next[ length ]!, length );
			next[ length ]! += 1;
		}
	} );
	return { lengths, codes };
}

function reversed( code: number, length: number ): number {
	let out = 0;
	for ( let bit = 0; bit < length; bit++ ) {
		out = ( out << 1 ) | ( ( code >> bit ) & 1 );
	}
	return out;
}

/** Replaces the sorted counts by lengths of codes, in place (Moffat and Katajainen 1995). */
function minimumRedundancy( symbols: Symbol[] ): void {
	const count = symbols.length;
	const at = ( index: number ) => symbols[ index ]!;
	if ( count < 2 ) {
		symbols.forEach( ( symbol ) => ( symbol.key = 1 ) );
		return;
	}
	at( 0 ).key += at( 1 ).key;
	let root = 0;
	let leaf = 2;
	for ( let next = 1; next < count - 1; next++ ) {
		if ( leaf >= count || at( root ).key < at( leaf ).key ) {
			at( next ).key = at( root ).key;
			at( root++ ).key = next;
		} else {
			at( next ).key = at( leaf++ ).key;
		}
		if ( leaf >= count || ( root < next && at( root ).key < at( leaf ).key ) ) {
			at( next ).key += at( root ).key;
			at( root++ ).key = next;
		} else {
			at( next ).key += at( leaf++ ).key;
		}
	}
	at( count - 2 ).key = 0;
	for ( let next = count - 3; next >= 0; next-- ) {
		at( next ).key = at( at( next ).key ).key + 1;
	}
	let available = 1;
	let used = 0;
	let depth = 0;
	root = count - 2;
	let next = count - 1;
	while ( available > 0 ) {
		while ( root >= 0 && at( root ).key === depth ) {
			used += 1;
			root -= 1;
		}
		while ( available > used ) {
			at( next-- ).key = depth;
			available -= 1;
		}
		available = 2 * used;
		depth += 1;
		used = 0;
	}
}

/** Shortens codes beyond the limit and lengthens others until the code is complete again. */
function enforceLimit( numbers: Int32Array, symbols: number, limit: number ): void {
	if ( symbols <= 1 ) {
		return;
	}
	for ( let length = limit + 1; length < numbers.length; length++ ) {
		numbers[ limit ]! += numbers[ length ]!;
	}
	let total = 0;
	for ( let length = limit; length > 0; length-- ) {
		total += numbers[ length ]! * 2 ** ( limit - length );
	}
	for ( ; total > 2 ** limit; total-- ) {
		numbers[ limit ]! -= 1;
		for ( let length = limit - 1; length > 0; length-- ) {
			if ( 0 !== numbers[ length ] ) {
				numbers[ length ]! -= 1;
				numbers[ length + 1 ]! += 2;
				break;
			}
		}
	}
}
