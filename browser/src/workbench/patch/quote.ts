/**
 * Quoting of file names as git prints them, similar to C string literals.
 */
import { key } from '../bytes';

const ESCAPES: Readonly< Record< number, string > > = { 7: '\\a', 8: '\\b', 9: '\\t', 10: '\\n', 11: '\\v', 12: '\\f', 13: '\\r', 34: '\\"', 92: '\\\\' };

/** Returns the name as git prints it: quoted only when it has a control character, `"`, `\` or a byte above 0x7e. */
export function quoteName( name: Uint8Array ): string {
	return name.some( ( byte ) => byte < 0x20 || byte > 0x7e || 0x22 === byte || 0x5c === byte ) ? quoted( name ) : key( name );
}

/** Returns the name in quotes, also when quotes are unnecessary. */
export function quoted( name: Uint8Array ): string {
	let out = '"';
	for ( const byte of name ) {
		const escape = ESCAPES[ byte ];
		if ( undefined !== escape ) {
			out += escape;
		} else if ( byte >= 0x20 && byte <= 0x7e ) {
			out += String.fromCharCode( byte );
		} else {
			out += '\\' + byte.toString( 8 ).padStart( 3, '0' );
		}
	}
	return out + '"';
}
