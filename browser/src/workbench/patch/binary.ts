/**
 * `GIT binary patch` blocks: the new and the old contents, each deflated and in git's base 85.
 */
import { zlibSync } from 'fflate';
import { concat, utf8 } from '../bytes';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~';
/** Number of deflated bytes that one line of a literal encodes, as in git. */
const LINE = 52;

/** Returns a binary patch without its `index` line: the new contents, then the old contents. */
export function binaryPatch( before: Uint8Array, after: Uint8Array ): Uint8Array {
	return concat( [ utf8( 'GIT binary patch\n' ), literal( after ), literal( before ) ] );
}

function literal( bytes: Uint8Array ): Uint8Array {
	const out = [ `literal ${ bytes.length }\n` ];
	const deflated = zlibSync( bytes );
	for ( let start = 0; start < deflated.length; start += LINE ) {
		const chunk = deflated.subarray( start, start + LINE );
		// The first character of a line is the number of bytes: A to Z for 1 to 26, a to z for 27 to 52.
		out.push( String.fromCharCode( chunk.length + ( chunk.length <= 26 ? 64 : 70 ) ) );
		for ( let at = 0; at < chunk.length; at += 4 ) {
			// Not shifted: bit operations would make it a signed number.
			let value = 0;
			for ( let i = 0; i < 4; i++ ) {
				value = value * 256 + ( chunk[ at + i ] ?? 0 );
			}
			let digits = '';
			for ( let i = 0; i < 5; i++ ) {
				digits = ALPHABET[ value % 85 ] + digits;
				value = Math.floor( value / 85 );
			}
			out.push( digits );
		}
		out.push( '\n' );
	}
	out.push( '\n' );
	return utf8( out.join( '' ) );
}
