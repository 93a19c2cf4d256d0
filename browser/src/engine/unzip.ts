/** Unpacks archives into the file system of PHP. Entry names that leave the target are refused. */
import { unzipSync } from 'fflate';
import type { PHP } from '@php-wasm/universal';
import { EngineError } from './api.js';

/** Files by name below the target. */
export type Entries = Map< string, Uint8Array >;

/** Maximum size of one unpacked archive: more memory would crash the tab. WordPress itself has 40 MB. */
const mostBytes = 256 << 20;

/** Throws when the files of an archive have more bytes than a sandbox can hold. */
export function checkSize( total: number, name: string ): void {
	if ( total > mostBytes ) {
		throw new EngineError( 'wp_codebox_browser_seed_too_large', `${ name } unpacks to more than ${ mostBytes >> 20 } MiB, which a sandbox in a browser cannot hold.`, 'Remove large files from the plugin, the theme or the bundle, or use a sandbox of the host.' );
	}
}

/** The failure of an archive that cannot be read. */
export function unreadable( name: string, reason: string ): EngineError {
	return new EngineError( 'wp_codebox_browser_boot_failed', `${ name } is not a readable zip archive (${ reason }).` );
}

/** Throws unless the name of an entry stays below its directory. */
export function checkName( path: string, name: string ): void {
	if ( ! safeName( path ) ) {
		throw new EngineError( 'wp_codebox_browser_boot_failed', `${ name } has an entry with an unsafe name: ${ JSON.stringify( path ) }.` );
	}
}

/** Reads a zip. Entries of directories are left out; writing the files creates the directories. */
export function readZip( bytes: Uint8Array, name: string ): Entries {
	let files: Record< string, Uint8Array >;
	let total = 0;
	try {
		files = unzipSync( bytes, { filter: ( file ) => {
			// The announced size is enough: no entry unpacks to more.
			total += file.originalSize;
			checkSize( total, name );
			return ! file.name.endsWith( '/' );
		} } );
	} catch ( thrown ) {
		if ( thrown instanceof EngineError ) {
			throw thrown;
		}
		throw unreadable( name, thrown instanceof Error ? thrown.message : String( thrown ) );
	}
	const entries: Entries = new Map();
	for ( const [ path, contents ] of Object.entries( files ) ) {
		checkName( path, name );
		entries.set( path, contents );
	}
	return entries;
}

/** Whether a name stays below its directory. */
export function safeName( path: string ): boolean {
	return '' !== path && ! path.startsWith( '/' ) && ! /[\\\0]/.test( path ) && path.split( '/' ).every( ( part ) => '' !== part && '.' !== part && '..' !== part );
}

/** Writes entries below a directory. */
export function writeEntries( php: PHP, directory: string, entries: Entries ): void {
	const made = new Set< string >();
	for ( const [ name, contents ] of entries ) {
		const path = `${ directory }/${ name }`;
		const parent = path.slice( 0, path.lastIndexOf( '/' ) );
		if ( ! made.has( parent ) ) {
			php.mkdir( parent );
			made.add( parent );
		}
		php.writeFile( path, contents );
	}
}

/** Whether a root is the single file of a plugin, such as `plugins/hello.php`. */
export function isFile( target: string ): boolean {
	return /\.php$/.test( target );
}

/**
 * Names the entries of a root's archive by target. Entries are relative to the root's directory. A root that is a
 * single file has one entry: its file name, or its full target.
 */
export function byTarget( entries: Entries, target: string ): Entries {
	if ( ! isFile( target ) ) {
		return new Map( [ ...entries ].map( ( [ name, contents ] ) => [ `${ target }/${ name }`, contents ] ) );
	}
	const contents = entries.get( target.split( '/' ).pop() ?? target ) ?? entries.get( target );
	return undefined === contents ? new Map() : new Map( [ [ target, contents ] ] );
}

/** Whether two files have the same contents. */
export function equal( a: Uint8Array, b: Uint8Array ): boolean {
	return a.byteLength === b.byteLength && a.every( ( byte, index ) => byte === b[ index ] );
}
