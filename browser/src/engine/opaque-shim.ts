import { serveFrames } from './opaque-frames.js';
import { escapeHtml } from './sentence.js';

/**
 * Script that each opaque document runs first. A document without an origin has no storage and no cookies, and
 * reading them throws, which breaks many scripts that only keep preferences. They get a storage in memory.
 */
export const opaqueShim = `<script>( () => {
	const make = () => {
		const map = new Map();
		return { getItem: ( key ) => map.get( String( key ) ) ?? null, setItem: ( key, value ) => void map.set( String( key ), String( value ) ), removeItem: ( key ) => void map.delete( String( key ) ), clear: () => map.clear(), key: ( at ) => [ ...map.keys() ][ at ] ?? null, get length() { return map.size; } };
	};
	for ( const name of [ 'localStorage', 'sessionStorage' ] ) {
		Object.defineProperty( window, name, { value: make(), configurable: true } );
	}
	const cookies = new Map();
	Object.defineProperty( document, 'cookie', { configurable: true, get: () => [ ...cookies ].map( ( pair ) => pair.join( '=' ) ).join( '; ' ), set: ( text ) => {
		const [ pair ] = String( text ).split( ';' );
		cookies.set( pair.split( '=' )[ 0 ].trim(), pair.slice( pair.indexOf( '=' ) + 1 ).trim() );
	} } );
} )();( ${ serveFrames } )();</script>`;

/** Puts the script before all others. A `srcdoc` document has no address, so `base` is set as the base of its relative URLs. */
export function withShim( html: string, base?: string ): string {
	const head = /<head\b[^>]*>/i.exec( html ) ?? /<html\b[^>]*>/i.exec( html ) ?? /<!doctype[^>]*>/i.exec( html );
	const at = null === head ? 0 : head.index + head[ 0 ].length;
	const address = undefined === base ? '' : `<base href="${ escapeHtml( base ) }">`;
	return html.slice( 0, at ) + address + opaqueShim + html.slice( at );
}
