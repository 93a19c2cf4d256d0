/** File functions of the client, with errors that name the path. */
import type { PHP } from '@php-wasm/universal';
import { EngineError } from './api.js';
import type { Site } from './site.js';

/** Runs a file operation and turns errors of the file system into sentences. */
function attempt< Value >( what: string, path: string, task: () => Value ): Value {
	if ( 'string' !== typeof path || ! path.startsWith( '/' ) || path.includes( '\0' ) ) {
		throw new EngineError( 'wp_codebox_browser_file_failed', `${ JSON.stringify( path ) } is not an absolute path of the sandbox.` );
	}
	try {
		return task();
	} catch ( thrown ) {
		throw new EngineError( 'wp_codebox_browser_file_failed', `Could not ${ what } ${ path }: ${ reason( thrown ) }.` );
	}
}

/** The reason of a file system error, without the path that the message may repeat. */
export function reason( thrown: unknown ): string {
	const text = thrown instanceof Error ? thrown.message : String( thrown );
	return ( text.split( ': ' ).pop() ?? text ).replace( /\.$/, '' );
}

/** Normalizes a path: no `.`, `..` or double slashes. */
export function normalize( path: string ): string {
	const parts: string[] = [];
	for ( const part of path.split( '/' ) ) {
		if ( '..' === part ) {
			parts.pop();
		} else if ( '' !== part && '.' !== part ) {
			parts.push( part );
		}
	}
	return `/${ parts.join( '/' ) }`;
}

/** Removes a file or a whole directory. */
export function removeTree( php: PHP, path: string ): void {
	if ( php.isDir( path ) ) {
		php.rmdir( path, { recursive: true } );
	} else {
		php.unlink( path );
	}
}

/** Copies a file or a whole directory. */
export function copyTree( php: PHP, from: string, to: string ): void {
	if ( ! php.isDir( from ) ) {
		php.writeFile( to, php.readFileAsBuffer( from ).slice() );
		return;
	}
	php.mkdir( to );
	for ( const name of php.listFiles( from ) ) {
		copyTree( php, `${ from }/${ name }`, `${ to }/${ name }` );
	}
}

/** The file functions that the page may call. */
export function fileHandlers( site: Site ) {
	return {
		readFileAsText: ( path: string ) => attempt( 'read', path, () => site.php.readFileAsText( path ) ),
		readFileAsBuffer: ( path: string ) => attempt( 'read', path, () => site.php.readFileAsBuffer( path ).slice() ),
		writeFile: ( path: string, contents: string | Uint8Array ) => attempt( 'write', path, () => {
			site.php.mkdir( path.slice( 0, path.lastIndexOf( '/' ) ) || '/' );
			site.php.writeFile( path, contents );
		} ),
		mkdir: ( path: string ) => attempt( 'make', path, () => site.php.mkdir( path ) ),
		unlink: ( path: string ) => attempt( 'remove', path, () => site.php.unlink( path ) ),
		rmdir: ( path: string, options: { recursive?: boolean } ) => attempt( 'remove', path, () => site.php.rmdir( path, { recursive: options?.recursive ?? false } ) ),
		mv: ( from: string, to: string ) => attempt( 'move', from, () => site.php.mv( from, to ) ),
		fileExists: ( path: string ) => attempt( 'look for', path, () => site.php.fileExists( path ) ),
		isDir: ( path: string ) => attempt( 'look for', path, () => site.php.isDir( path ) ),
		listFiles: ( path: string, options: { prependPath?: boolean } ) => attempt( 'list', path, () => site.php.listFiles( path, { prependPath: options?.prependPath ?? false } ) ),
	};
}
