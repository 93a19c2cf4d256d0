/**
 * What the visitor changed: changed files, their patch, and a digest.
 */
import type { ChangedFile as EngineChange } from '../engine/api';
import { base64, concat, key, lossyText, utf8 } from './bytes';
import { sha256 } from './digests';
import { changedFiles, sorted, type ChangedFile, type Mount } from './patch/changed-files';
import { file, type Entry } from './patch/entry';
import { renderPatch } from './patch/render';
import { directory } from './paths';

/** A root of the session. */
export interface Root {
	/** Name below wp-content, such as `plugins/foo`. */
	readonly target: string;
	readonly path: string;
	readonly label: string;
}

/** One changed file with its part of the patch. */
export interface ShownChange {
	/** Name below wp-content. */
	readonly target: string;
	readonly file: ChangedFile;
	readonly patch: string;
	readonly before: Uint8Array | null;
	readonly after: Uint8Array | null;
}

/** All changes of a session. */
export interface ChangeSet {
	readonly files: readonly ShownChange[];
	readonly patch: Uint8Array;
	/** SHA-256 of the JSON `[[path, beforeSha256, afterSha256], …]`, null where a file does not exist. The bundle has these members in `files/changed-files.json`. */
	readonly digest: string;
	readonly insertions: number;
	readonly deletions: number;
}

/** Patch and entry of a file that was rendered before, by mount, name and contents. */
export type Rendered = Map< string, { readonly patch: Uint8Array; readonly row: ChangedFile } >;

/** Computes patch and digest of the changes that the engine reports. Files in `rendered` are not rendered again. */
export async function changeSet( changes: readonly EngineChange[], roots: readonly Root[], rendered: Rendered = new Map() ): Promise< ChangeSet > {
	const files: ShownChange[] = [];
	const patches: Uint8Array[] = [];
	const used = new Set< string >();
	const mounted = byMount( roots );
	for ( const [ index, [ target, inside ] ] of [ ...mounted ].entries() ) {
		const mount: Mount = { index, target, prefix: 1 === mounted.size ? '' : target.slice( 1 ) + '/' };
		const own = new Map< string, EngineChange >();
		const entries: Entry[] = [];
		for ( const change of changes ) {
			const relative = inside.map( ( root ) => relativePath( change.path, root ) ).find( ( found ) => null !== found ) ?? null;
			if ( null !== relative ) {
				const path = utf8( relative );
				own.set( key( path ), change );
				entries.push( { path, before: change.before ? file( change.before ) : null, after: change.after ? file( change.after ) : null } );
			}
		}
		for ( const entry of sorted( entries ) ) {
			const change = own.get( key( entry.path ) )!;
			const name = JSON.stringify( [ mount, change.path, change.before ? await sha256( change.before ) : null, change.after ? await sha256( change.after ) : null ] );
			const { patch, row } = rendered.get( name ) ?? ( await render( mount, entry ) );
			rendered.set( name, { patch, row } );
			used.add( name );
			files.push( { target: change.path, file: row, patch: lossyText( patch ), before: change.before ?? null, after: change.after ?? null } );
			patches.push( patch );
		}
	}
	for ( const name of rendered.keys() ) {
		if ( ! used.has( name ) ) {
			rendered.delete( name );
		}
	}
	const patch = concat( patches );
	// Without the patch: one change has several patches, and the site renders its own.
	const digest = await sha256( utf8( JSON.stringify( files.map( ( change ) => [ change.file.path, change.file.beforeSha256 ?? null, change.file.afterSha256 ?? null ] ) ) ) );
	const sum = ( name: 'insertions' | 'deletions' ) => files.reduce( ( total, change ) => total + ( change.file[ name ] ?? 0 ), 0 );
	return { files, patch, digest, insertions: sum( 'insertions' ), deletions: sum( 'deletions' ) };
}

/**
 * Returns patch and changed-file row of one changed file. Each file can be rendered alone, because renames are never looked for: the
 * patch of a mount is then the patches of its files one after another.
 */
async function render( mount: Mount, entry: Entry ): Promise< { patch: Uint8Array; row: ChangedFile } > {
	const patch = await renderPatch( [ entry ], mount.prefix );
	const [ row ] = await changedFiles( mount, [ entry ], patch );
	return { patch: patch.bytes, row: row! };
}

/** Returns the members of a request that stores these changes as a bundle. */
export function upload( changes: ChangeSet ): { files: Array< { path: string; content_base64: string } >; deleted: string[] } {
	return {
		files: changes.files.flatMap( ( { target, after } ) => ( after ? [ { path: target, content_base64: base64( after ) } ] : [] ) ),
		deleted: changes.files.flatMap( ( { target, after } ) => ( after ? [] : [ target ] ) ),
	};
}

/** Returns the root that contains a path of the sandbox. */
export function rootOf( path: string, roots: readonly Root[] ): Root | null {
	return roots.find( ( root ) => path === root.path || path.startsWith( root.path + '/' ) ) ?? null;
}

/** Returns the path of the sandbox for a name below wp-content. */
export function pathOf( target: string, roots: readonly Root[] ): string | null {
	const root = roots.find( ( candidate ) => target === candidate.target || target.startsWith( candidate.target + '/' ) );
	return root ? root.path + target.slice( root.target.length ) : null;
}

/** Returns the directory that is mounted for a root: for a single file, such as `plugins/hello.php`, the one that contains it. */
export function directoryOf( root: Root ): string {
	return root.target.endsWith( '.php' ) ? directory( root.path ) : root.path;
}

/** Groups the roots by their mount in a bundle. Roots that are single files share the mount of their directory. */
function byMount( roots: readonly Root[] ): Map< string, Root[] > {
	const mounted = new Map< string, Root[] >();
	for ( const root of roots ) {
		mounted.set( directoryOf( root ), [ ...( mounted.get( directoryOf( root ) ) ?? [] ), root ] );
	}
	return mounted;
}

function relativePath( target: string, root: Root ): string | null {
	if ( target === root.target ) {
		return target.slice( target.lastIndexOf( '/' ) + 1 );
	}
	return target.startsWith( root.target + '/' ) ? target.slice( root.target.length + 1 ) : null;
}
