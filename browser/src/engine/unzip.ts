/** Unpacks archives into the file system of PHP. Entry names that leave the target are refused. */
import { unzipSync } from 'fflate';
import type { PHP } from '@php-wasm/universal';
import { EngineError } from './api.js';

/** Files by name below the target. */
export type Entries = Map< string, Uint8Array >;

/** Reads a zip. Directories are left out; files make them. */
export function readZip( bytes: Uint8Array, name: string ): Entries {
	let files: Record< string, Uint8Array >;
	try {
		files = unzipSync( bytes, { filter: ( file ) => ! file.name.endsWith( '/' ) } );
	} catch ( thrown ) {
		throw new EngineError( 'wp_codebox_browser_boot_failed', `${ name } is not a readable zip archive (${ thrown instanceof Error ? thrown.message : thrown }).` );
	}
	const entries: Entries = new Map();
	for ( const [ path, contents ] of Object.entries( files ) ) {
		if ( ! safeName( path ) ) {
			throw new EngineError( 'wp_codebox_browser_boot_failed', `${ name } has an entry with an unsafe name: ${ JSON.stringify( path ) }.` );
		}
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

/**
 * Names the entries of a root's archive by target. Archives hold either full targets (`plugins/foo/a.php`), or
 * the root's own directory (`foo/a.php`), or only what is below it (`a.php`).
 */
export function byTarget( entries: Entries, target: string ): Entries {
	const names = [ ...entries.keys() ];
	const own = target.split( '/' ).pop() ?? target;
	const single = /\.php$/.test( own );
	if ( names.length > 0 && names.every( ( name ) => /^(plugins|themes|mu-plugins)\//.test( name ) ) ) {
		return entries;
	}
	const renamed: Entries = new Map();
	const inDirectory = ! single && names.length > 0 && names.every( ( name ) => name.startsWith( `${ own }/` ) );
	const parent = target.slice( 0, target.length - own.length );
	for ( const [ name, contents ] of entries ) {
		renamed.set( single || inDirectory ? parent + name : `${ target }/${ name }`, contents );
	}
	return renamed;
}
