/** The visitor's code as it was at the start, and what differs from it now. */
import type { PHP } from '@php-wasm/universal';
import type { ChangedFile, SessionRoot } from './api.js';
import { EngineError } from './api.js';
import { byTarget, equal, isFile, readZip, writeEntries, type Entries } from './unzip.js';

const content = '/wordpress/wp-content';

/** Contents of all roots by target name such as `plugins/foo/a.php`. */
export class Baseline {
	private readonly files: Entries = new Map();
	readonly roots: SessionRoot[] = [];

	constructor( private readonly php: () => PHP ) {}

	/**
	 * Unpacks a root and remembers the contents of its archive. Files of the overlay count as changes, because the
	 * host compares a kept bundle with the archive alone.
	 */
	add( root: SessionRoot, archive: Uint8Array, overlay: Uint8Array | null ): void {
		const before = byTarget( readZip( archive, `The archive of ${ root.target }` ), root.target );
		const now: Entries = new Map( before );
		if ( null !== overlay ) {
			byTarget( readZip( overlay, `The bundle for ${ root.target }` ), root.target ).forEach( ( contents, name ) => now.set( name, contents ) );
			root.overlay?.deleted?.forEach( ( name ) => now.delete( name ) );
		}
		writeEntries( this.php(), content, now );
		before.forEach( ( contents, name ) => this.files.set( name, contents ) );
		this.roots.push( root );
		// An archive has no entry for an empty directory. A single file that the overlay deletes is not created.
		if ( ! isFile( root.target ) && ! this.php().fileExists( root.path ) ) {
			this.php().mkdir( root.path );
		}
	}

	/** Directory of the first root; if this root is a single file, the directory that contains it. */
	get directory(): string | undefined {
		const [ root ] = this.roots;
		return root && isFile( root.target ) ? root.path.slice( 0, root.path.lastIndexOf( '/' ) ) : root?.path;
	}

	/** Whether a path of the sandbox is below a root. */
	holds( path: string ): boolean {
		return this.roots.some( ( root ) => covers( root.path, path ) );
	}

	/** Files that differ from the baseline, sorted by name. */
	changed( target?: string ): ChangedFile[] {
		const roots = undefined === target ? this.roots : this.roots.filter( ( root ) => root.target === target );
		if ( undefined !== target && 0 === roots.length ) {
			throw new EngineError( 'wp_codebox_browser_file_failed', `${ target } is not a plugin or theme of this session.` );
		}
		const changes: ChangedFile[] = [];
		for ( const root of roots ) {
			const seen = new Set< string >();
			for ( const name of this.names( root.path, root.target ) ) {
				seen.add( name );
				const after = this.php().readFileAsBuffer( `${ content }/${ name }` );
				const before = this.files.get( name );
				if ( undefined === before ) {
					changes.push( { path: name, status: 'added', after: after.slice() } );
				} else if ( ! equal( before, after ) ) {
					changes.push( { path: name, status: 'modified', before, after: after.slice() } );
				}
			}
			for ( const [ name, before ] of this.files ) {
				if ( covers( root.target, name ) && ! seen.has( name ) ) {
					changes.push( { path: name, status: 'deleted', before } );
				}
			}
		}
		return changes.sort( ( a, b ) => ( a.path < b.path ? -1 : 1 ) );
	}

	private names( path: string, name: string ): string[] {
		const php = this.php();
		if ( ! php.fileExists( path ) ) {
			return [];
		}
		if ( ! php.isDir( path ) ) {
			return [ name ];
		}
		return php.listFiles( path ).flatMap( ( one ) => this.names( `${ path }/${ one }`, `${ name }/${ one }` ) );
	}
}

function covers( target: string, name: string ): boolean {
	return name === target || name.startsWith( `${ target }/` );
}
