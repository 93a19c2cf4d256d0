/**
 * Deflate with a zlib header, byte for byte as miniz_oxide 0.9 compresses at level 6.
 *
 * A binary patch carries deflated data, and different encoders give different bytes for the same contents. The host uses
 * the Rust crate miniz_oxide (MIT, Copyright 2013-2014 RAD Game Tools and Valve Software, 2010-2014 Rich Geldreich and
 * Tenacious Software LLC, 2017 Frommi, 2017-2024 oyvindln). This module follows its choice of matches, blocks and codes
 * (https://github.com/Frommi/miniz_oxide), so that the patch shown here is the patch of the bundle.
 */
import { codesFor, codesOf, type Codes } from './huffman';

const WINDOW = 32_768;
const MASK = WINDOW - 1;
const MIN_MATCH = 3;
const MAX_MATCH = 258;
/** Size of the encoder's buffer of symbols; a full buffer ends a block. */
const CODE_BUFFER = 65_536;
/** Number of positions that are compared for one match, before and after a match of 32 bytes is known. */
const PROBES = [ 44, 12 ] as const;
const LENGTH_ORDER = [ 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15 ];
const LENGTH_BASE = [ 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 ];
const LENGTH_EXTRA = [ 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 ];
const DISTANCE_BASE = [ 1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577 ];

/** For each length of a match and each distance: the index of its code. */
const LENGTH_CODE = table( LENGTH_BASE, MAX_MATCH );
const DISTANCE_CODE = table( DISTANCE_BASE, WINDOW );

function table( bases: readonly number[], most: number ): Uint8Array {
	const out = new Uint8Array( most + 1 );
	bases.forEach( ( base, code ) => out.fill( code, base ) );
	return out;
}

/** Returns the data in zlib's format. */
export function deflate( data: Uint8Array ): Uint8Array {
	return new Encoder( data ).run();
}

class BitWriter {
	private bytes = new Uint8Array( 1024 );
	private buffer = 0;
	private count = 0;
	length = 0;

	put( bits: number, count: number ): void {
		this.buffer |= bits << this.count;
		this.count += count;
		while ( this.count >= 8 ) {
			this.byte( this.buffer & 0xff );
			this.buffer >>>= 8;
			this.count -= 8;
		}
	}

	byte( value: number ): void {
		if ( this.length === this.bytes.length ) {
			const larger = new Uint8Array( 2 * this.length );
			larger.set( this.bytes );
			this.bytes = larger;
		}
		this.bytes[ this.length++ ] = value;
	}

	align(): void {
		if ( 0 !== this.count ) {
			this.put( 0, 8 - this.count );
		}
	}

	save(): readonly [ number, number, number ] {
		return [ this.length, this.buffer, this.count ];
	}

	restore( [ length, buffer, count ]: readonly [ number, number, number ] ): void {
		this.length = length;
		this.buffer = buffer;
		this.count = count;
	}

	done(): Uint8Array {
		return this.bytes.slice( 0, this.length );
	}
}

class Encoder {
	private readonly out = new BitWriter();
	/** The window; the bytes after it repeat its start, so that a match may be read across its end. */
	private readonly window = new Uint8Array( WINDOW + MAX_MATCH );
	/** For each position in the window the position before it with the same hash, and the newest position of each hash. */
	private readonly chain = new Uint16Array( WINDOW );
	private readonly newest = new Uint16Array( WINDOW );
	private literals = new Uint16Array( 288 );
	private distances = new Uint16Array( 32 );
	/** Symbols of the block: a literal byte, or 2^24 + length * 2^16 + distance - 1. */
	private symbols: number[] = [];
	/** Fill level of the encoder's buffer: a byte for a literal, three for a match, one before each eight symbols. */
	private filled = 1;
	private blockBytes = 0;
	private blockStart = 0;
	private known = 0;
	private lookahead = 0;
	private position = 0;
	private read = 0;

	constructor( private readonly data: Uint8Array ) {}

	run(): Uint8Array {
		this.out.put( 0x78, 8 );
		this.out.put( 0x9c, 8 );
		let saved = 0;
		let savedLength = 0;
		let savedDistance = 0;
		while ( this.read < this.data.length || 0 !== this.lookahead ) {
			this.fill();
			this.known = Math.min( WINDOW - this.lookahead, this.known );
			const at = this.position & MASK;
			let [ distance, length ] = this.match( savedLength > 0 ? savedLength : MIN_MATCH - 1 );
			// A short match far away costs more than its three literals.
			if ( ( MIN_MATCH === length && distance >= 8192 ) || at === distance ) {
				distance = 0;
				length = 0;
			}
			let step = 1;
			if ( 0 !== savedLength ) {
				if ( length > savedLength ) {
					this.literal( saved );
					if ( length >= 128 ) {
						this.pair( length, distance );
						savedLength = 0;
						step = length;
					} else {
						saved = this.window[ at ]!;
						savedLength = length;
						savedDistance = distance;
					}
				} else {
					this.pair( savedLength, savedDistance );
					step = savedLength - 1;
					savedLength = 0;
				}
			} else if ( 0 === distance ) {
				this.literal( this.window[ at ]! );
			} else if ( length >= 128 ) {
				this.pair( length, distance );
				step = length;
			} else {
				// The next position may have a longer match.
				saved = this.window[ at ]!;
				savedLength = length;
				savedDistance = distance;
			}
			this.position += step;
			this.lookahead -= step;
			this.known = Math.min( this.known + step, WINDOW );
			const poor = this.blockBytes > 31 * 1024 && ( this.filled * 115 ) >> 7 >= this.blockBytes;
			if ( this.filled > CODE_BUFFER - 8 || poor ) {
				this.endBlock( 0 );
			}
		}
		this.endBlock( 1 );
		this.out.align();
		const sum = adler32( this.data );
		[ 24, 16, 8, 0 ].forEach( ( shift ) => this.out.put( ( sum >>> shift ) & 0xff, 8 ) );
		return this.out.done();
	}

	/** Reads input until the longest match fits, and enters each position into the chain of its hash. */
	private fill(): void {
		const { window, chain, newest } = this;
		for ( let left = Math.min( this.data.length - this.read, MAX_MATCH - this.lookahead ); left > 0; left-- ) {
			const byte = this.data[ this.read++ ]!;
			const at = ( this.position + this.lookahead ) & MASK;
			window[ at ] = byte;
			if ( at < MAX_MATCH - 1 ) {
				window[ WINDOW + at ] = byte;
			}
			this.lookahead += 1;
			if ( this.lookahead + this.known >= MIN_MATCH ) {
				const entered = this.position + this.lookahead - MIN_MATCH;
				const hash = ( ( window[ entered & MASK ]! << 10 ) ^ ( window[ ( entered + 1 ) & MASK ]! << 5 ) ^ byte ) & MASK;
				chain[ entered & MASK ] = newest[ hash ]!;
				newest[ hash ] = entered;
			}
		}
	}

	/** Returns distance and length of the best match that is longer than `best`; distance 0 when there is none. */
	private match( best: number ): [ number, number ] {
		const { window, chain } = this;
		const most = Math.min( MAX_MATCH, this.lookahead );
		let distance = 0;
		let length = best;
		if ( most <= length ) {
			return [ distance, length ];
		}
		const at = this.position & MASK;
		let probe = at;
		let probes: number = length < 32 ? PROBES[ 0 ] : PROBES[ 1 ];
		for (;;) {
			let apart = 0;
			search: for (;;) {
				probes -= 1;
				if ( 0 === probes ) {
					return [ distance, length ];
				}
				for ( let i = 0; i < 3; i++ ) {
					const next = chain[ probe ]!;
					apart = ( this.position - next ) & 0xffff;
					if ( 0 === next || apart > this.known ) {
						return [ distance, length ];
					}
					probe = next & MASK;
					if ( window[ probe + length - 1 ] === window[ at + length - 1 ] && window[ probe + length ] === window[ at + length ] ) {
						break search;
					}
				}
			}
			if ( 0 === apart ) {
				return [ distance, length ];
			}
			if ( window[ probe ] !== window[ at ] || window[ probe + 1 ] !== window[ at + 1 ] ) {
				continue;
			}
			let common = 2;
			while ( common < MAX_MATCH && window[ ( at + common ) & MASK ] === window[ ( probe + common ) & MASK ] ) {
				common += 1;
			}
			if ( MAX_MATCH === common ) {
				return [ apart, most ];
			}
			if ( common > length ) {
				distance = apart;
				length = Math.min( most, common );
				if ( length >= most ) {
					return [ distance, length ];
				}
			}
		}
	}

	private literal( byte: number ): void {
		this.literals[ byte ]! += 1;
		this.add( byte, 1, 1 );
	}

	private pair( length: number, distance: number ): void {
		this.literals[ 257 + LENGTH_CODE[ length ]! ]! += 1;
		this.distances[ DISTANCE_CODE[ distance ]! ]! += 1;
		this.add( 2 ** 25 + length * 2 ** 15 + distance - 1, 3, length );
	}

	private add( symbol: number, size: number, bytes: number ): void {
		this.symbols.push( symbol );
		this.filled += size + ( 0 === this.symbols.length % 8 ? 1 : 0 );
		this.blockBytes += bytes;
	}

	private endBlock( last: 0 | 1 ): void {
		this.out.put( last, 1 );
		const start = this.out.save();
		this.block( this.blockBytes < 48 );
		const larger = this.blockBytes > 32 && this.out.length - start[ 0 ] + 1 >= this.blockBytes && this.position - this.blockStart <= this.known;
		if ( larger ) {
			this.out.restore( start );
			this.stored();
		}
		this.literals = new Uint16Array( 288 );
		this.distances = new Uint16Array( 32 );
		this.symbols = [];
		this.filled = 1;
		this.blockStart += this.blockBytes;
		this.blockBytes = 0;
	}

	private stored(): void {
		this.out.put( 0, 2 );
		this.out.align();
		this.out.put( this.blockBytes & 0xffff, 16 );
		this.out.put( ~this.blockBytes & 0xffff, 16 );
		for ( let i = 0; i < this.blockBytes; i++ ) {
			this.out.byte( this.window[ ( this.blockStart + i ) & MASK ]! );
		}
	}

	private block( fixed: boolean ): void {
		const [ literals, distances ] = fixed ? this.fixedCodes() : this.dynamicCodes();
		const put = ( { lengths, codes }: Codes, symbol: number ) => this.out.put( codes[ symbol ]!, lengths[ symbol ]! );
		for ( const symbol of this.symbols ) {
			if ( symbol < 256 ) {
				put( literals, symbol );
				continue;
			}
			const length = ( symbol >> 15 ) & 0x3ff;
			const distance = ( symbol & 0x7fff ) + 1;
			const lengthCode = LENGTH_CODE[ length ]!;
			put( literals, 257 + lengthCode );
			this.out.put( length - LENGTH_BASE[ lengthCode ]!, LENGTH_EXTRA[ lengthCode ]! );
			const distanceCode = DISTANCE_CODE[ distance ]!;
			put( distances, distanceCode );
			this.out.put( distance - DISTANCE_BASE[ distanceCode ]!, Math.max( 0, ( distanceCode >> 1 ) - 1 ) );
		}
		put( literals, 256 );
	}

	private fixedCodes(): [ Codes, Codes ] {
		this.out.put( 1, 2 );
		const lengths = new Uint8Array( 288 ).fill( 8 ).fill( 9, 144, 256 ).fill( 7, 256, 280 );
		return [ codesOf( lengths, 15 ), codesOf( new Uint8Array( 32 ).fill( 5 ), 15 ) ];
	}

	private dynamicCodes(): [ Codes, Codes ] {
		this.literals[ 256 ] = 1;
		const literals = codesFor( this.literals, 15 );
		const distances = codesFor( this.distances, 15 );
		const literalCount = used( literals.lengths, 257, 286 );
		const distanceCount = used( distances.lengths, 1, 30 );
		const counts = new Uint16Array( 19 );
		const packed = pack( [ ...literals.lengths.subarray( 0, literalCount ), ...distances.lengths.subarray( 0, distanceCount ) ] );
		packed.forEach( ( [ symbol ] ) => ( counts[ symbol ]! += 1 ) );
		const outer = codesFor( counts, 7 );
		let outerCount = LENGTH_ORDER.length;
		while ( outerCount > 4 && 0 === outer.lengths[ LENGTH_ORDER[ outerCount - 1 ]! ] ) {
			outerCount -= 1;
		}
		this.out.put( 2, 2 );
		this.out.put( literalCount - 257, 5 );
		this.out.put( distanceCount - 1, 5 );
		this.out.put( outerCount - 4, 4 );
		LENGTH_ORDER.slice( 0, outerCount ).forEach( ( symbol ) => this.out.put( outer.lengths[ symbol ]!, 3 ) );
		for ( const [ symbol, extra, bits ] of packed ) {
			this.out.put( outer.codes[ symbol ]!, outer.lengths[ symbol ]! );
			this.out.put( extra, bits );
		}
		return [ literals, distances ];
	}
}

/** Returns the number of leading lengths that are sent: at least `least`, at most `most`, without trailing zeros. */
function used( lengths: Uint8Array, least: number, most: number ): number {
	let count = most;
	while ( count > least && 0 === lengths[ count - 1 ] ) {
		count -= 1;
	}
	return count;
}

/** Run-length encodes lengths of codes: symbol, extra bits and their number. */
function pack( lengths: readonly number[] ): Array< [ number, number, number ] > {
	const out: Array< [ number, number, number ] > = [];
	let zeros = 0;
	let repeats = 0;
	let previous = -1;
	const flushRepeats = () => {
		if ( repeats > 0 && repeats < 3 ) {
			for ( let i = 0; i < repeats; i++ ) {
				out.push( [ previous, 0, 0 ] );
			}
		} else if ( repeats > 0 ) {
			out.push( [ 16, repeats - 3, 2 ] );
		}
		repeats = 0;
	};
	const flushZeros = () => {
		if ( zeros > 0 && zeros < 3 ) {
			for ( let i = 0; i < zeros; i++ ) {
				out.push( [ 0, 0, 0 ] );
			}
		} else if ( zeros > 10 ) {
			out.push( [ 18, zeros - 11, 7 ] );
		} else if ( zeros > 0 ) {
			out.push( [ 17, zeros - 3, 3 ] );
		}
		zeros = 0;
	};
	for ( const length of lengths ) {
		if ( 0 === length ) {
			flushRepeats();
			zeros += 1;
			if ( 138 === zeros ) {
				flushZeros();
			}
		} else {
			flushZeros();
			if ( length !== previous ) {
				flushRepeats();
				out.push( [ length, 0, 0 ] );
			} else {
				repeats += 1;
				if ( 6 === repeats ) {
					flushRepeats();
				}
			}
		}
		previous = length;
	}
	if ( repeats > 0 ) {
		flushRepeats();
	} else {
		flushZeros();
	}
	return out;
}

/** Returns the Adler-32 checksum of zlib. */
function adler32( bytes: Uint8Array ): number {
	let a = 1;
	let b = 0;
	for ( let at = 0; at < bytes.length; ) {
		// The sums of 5552 bytes fit 32 bits.
		for ( const end = Math.min( at + 5552, bytes.length ); at < end; at++ ) {
			a += bytes[ at ]!;
			b += a;
		}
		a %= 65_521;
		b %= 65_521;
	}
	return ( ( b << 16 ) | a ) >>> 0;
}
