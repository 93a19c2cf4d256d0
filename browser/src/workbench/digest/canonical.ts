/**
 * Canonical JSON, the input of every digest of a bundle.
 *
 * Rules: no white space, object keys in the order of their UTF-16 code units, ECMAScript escapes and numbers.
 * ext/core/artifacts/src/canonical.rs is the same in Rust; both pass tests/conformance/vectors.
 */

/** Largest number of keys of an object, of items of a list, and deepest level (the root is level 0). */
const MAX_KEYS = 300;
const MAX_ITEMS = 2000;
const MAX_DEPTH = 30;

/** Beyond the limits, `refuse` throws. `drop`, as in other implementations, leaves out keys and items and cuts deeper levels. */
export type OverLimit = 'refuse' | 'drop';

/** A value that exceeds a limit of canonical JSON. */
export class CanonicalError extends Error {
	readonly code = 'wp_codebox_input_invalid';
}

/** Returns a value as canonical JSON. */
export function canonicalJson( value: unknown, over: OverLimit = 'refuse' ): string {
	return write( value, 0, over );
}

function write( value: unknown, depth: number, over: OverLimit ): string {
	if ( depth > MAX_DEPTH ) {
		if ( 'refuse' === over ) {
			throw new CanonicalError( `a JSON value is nested deeper than the ${ MAX_DEPTH } levels that canonical JSON allows` );
		}
		return '"[max-depth]"';
	}
	if ( Array.isArray( value ) ) {
		if ( value.length > MAX_ITEMS && 'refuse' === over ) {
			throw new CanonicalError( `a JSON list has ${ value.length } items, but canonical JSON allows at most ${ MAX_ITEMS }` );
		}
		return `[${ value.slice( 0, MAX_ITEMS ).map( ( item ) => write( item, depth + 1, over ) ).join( ',' ) }]`;
	}
	if ( null !== value && 'object' === typeof value ) {
		const members = value as Record< string, unknown >;
		// The default order of sort() is that of UTF-16 code units.
		const keys = Object.keys( members ).sort();
		if ( keys.length > MAX_KEYS && 'refuse' === over ) {
			throw new CanonicalError( `a JSON object has ${ keys.length } keys, but canonical JSON allows at most ${ MAX_KEYS }` );
		}
		return `{${ keys.slice( 0, MAX_KEYS ).map( ( name ) => `${ JSON.stringify( name ) }:${ write( members[ name ], depth + 1, over ) }` ).join( ',' ) }}`;
	}
	// JSON.stringify escapes lone surrogates and writes -0 as 0 and a number that is not finite as null, as the rules want.
	return JSON.stringify( value ) ?? 'null';
}
