/** Static files of core and themes that the core archive leaves out: the sandbox loads the parent site's own copies. */
import type { CodeboxSource } from './api.js';

const types: Record< string, string > = {
	js: 'text/javascript', mjs: 'text/javascript', css: 'text/css', map: 'application/json', json: 'application/json', svg: 'image/svg+xml', png: 'image/png', gif: 'image/gif',
	jpg: 'image/jpeg', jpeg: 'image/jpeg', webp: 'image/webp', avif: 'image/avif', ico: 'image/x-icon', woff: 'font/woff', woff2: 'font/woff2', ttf: 'font/ttf', otf: 'font/otf', eot: 'application/vnd.ms-fontobject',
	mp4: 'video/mp4', webm: 'video/webm', mp3: 'audio/mpeg', ogg: 'audio/ogg', wav: 'audio/wav', pdf: 'application/pdf', txt: 'text/plain', xml: 'application/xml',
};

/** MIME type of a static file by its name; undefined for everything else, PHP included. */
export function staticType( path: string ): string | undefined {
	return types[ path.slice( path.lastIndexOf( '.' ) + 1 ).toLowerCase() ];
}

/**
 * URL of the parent site's own copy of a path such as `/wp-includes/js/x.js`, or null.
 *
 * Only static files of core and themes have one, never a path that the parent site's PHP would answer.
 */
export function parentUrl( statics: CodeboxSource[ 'statics' ], path: string ): string | null {
	const prefixes: Array< [ string, string | undefined ] > = [ [ '/wp-includes/', statics.includes ], [ '/wp-admin/', statics.admin ], [ '/wp-content/themes/', statics.themes ] ];
	if ( undefined === staticType( path ) || path.split( '/' ).some( ( part ) => '..' === part || '.' === part ) || ! /^[\w@./~+ -]+$/.test( path ) ) {
		return null;
	}
	for ( const [ prefix, base ] of prefixes ) {
		if ( path.startsWith( prefix ) && undefined !== base && '' !== base ) {
			return base + path.slice( prefix.length );
		}
	}
	return null;
}

/** Fetches the parent site's copy of a file for the worker; null when there is none. */
export async function fetchStatic( statics: CodeboxSource[ 'statics' ], path: string ): Promise< Uint8Array | null > {
	const url = parentUrl( statics, path );
	if ( null === url || new URL( url, location.href ).origin !== location.origin ) {
		return null;
	}
	const response = await fetch( url, { credentials: 'omit', redirect: 'error' } ).catch( () => null );
	if ( null === response || ! response.ok || ( response.headers.get( 'content-type' ) ?? '' ).startsWith( 'text/html' ) ) {
		return null;
	}
	return new Uint8Array( await response.arrayBuffer() );
}
