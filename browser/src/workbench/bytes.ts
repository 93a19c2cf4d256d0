/**
 * Byte strings: text, hexadecimal, base 64, comparison.
 */

const encoder = new TextEncoder();
/** Decodes like Rust: refuses what is not UTF-8, and keeps a byte order mark. */
const strict = new TextDecoder( 'utf-8', { fatal: true, ignoreBOM: true } );
const lenient = new TextDecoder( 'utf-8', { ignoreBOM: true } );

/** Returns the UTF-8 bytes of a text. */
export function utf8( text: string ): Uint8Array {
	return encoder.encode( text );
}

/** Returns the text that bytes encode, or null when they are not UTF-8. */
export function text( bytes: Uint8Array ): string | null {
	try {
		return strict.decode( bytes );
	} catch {
		return null;
	}
}

/** Returns bytes as text; U+FFFD stands for what is not UTF-8. */
export function lossyText( bytes: Uint8Array ): string {
	return lenient.decode( bytes );
}

/** Joins byte strings. */
export function concat( parts: readonly Uint8Array[] ): Uint8Array {
	const out = new Uint8Array( parts.reduce( ( sum, part ) => sum + part.length, 0 ) );
	let at = 0;
	for ( const part of parts ) {
		out.set( part, at );
		at += part.length;
	}
	return out;
}

/** Orders byte strings by their bytes, a prefix before what continues it. */
export function compare( a: Uint8Array, b: Uint8Array ): number {
	const common = Math.min( a.length, b.length );
	for ( let i = 0; i < common; i++ ) {
		const difference = a[ i ]! - b[ i ]!;
		if ( 0 !== difference ) {
			return difference;
		}
	}
	return a.length - b.length;
}

/** Returns whether two byte strings are equal. */
export function equal( a: Uint8Array, b: Uint8Array ): boolean {
	return a.length === b.length && 0 === compare( a, b );
}

/** Returns a string that is equal for equal byte strings only: one character for each byte. */
export function key( bytes: Uint8Array ): string {
	let out = '';
	for ( let i = 0; i < bytes.length; i += 8192 ) {
		out += String.fromCharCode( ...bytes.subarray( i, i + 8192 ) );
	}
	return out;
}

/** Returns bytes as lower-case hexadecimal digits. */
export function hex( bytes: Uint8Array ): string {
	return Array.from( bytes, ( byte ) => byte.toString( 16 ).padStart( 2, '0' ) ).join( '' );
}

/** Returns bytes in base 64 with padding. */
export function base64( bytes: Uint8Array ): string {
	return btoa( key( bytes ) );
}
