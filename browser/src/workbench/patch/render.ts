/**
 * Rendering of a mount's changes as a patch in git's format.
 *
 * ext/core/artifacts/src/patch/render.rs renders the patch of a stored bundle. This module must render the same bytes, so
 * that the patch a person sees before the upload is the patch of the bundle (tests/conformance/vectors/patches.json).
 */
import { concat, equal, key, text, utf8 } from '../bytes';
import { blobId } from '../digest/digests';
import { binaryPatch } from './binary';
import { blob, type Entry, type Node } from './entry';
import { hunks } from './hunks';
import { quoteName, quoted } from './quote';
import type { Rename } from './rename';

/** Maximum number of lines of a file that is compared line by line. */
const MAX_LINES = 200_000;

/** What a patch contains for one path; `none` is an empty directory or the old path of a rename. */
export type FileStats = { readonly kind: 'text'; readonly insertions: number; readonly deletions: number } | { readonly kind: 'binary' } | { readonly kind: 'none' };

/** A patch of one mount, and line counts for each path; keys are those of `key()`. */
export interface RenderedPatch {
	readonly bytes: Uint8Array;
	readonly stats: ReadonlyMap< string, FileStats >;
}

interface Names {
	readonly old: Uint8Array;
	readonly new: Uint8Array;
	readonly similarity: number | null;
}

/** Renders the changes of one mount. `prefix` is prepended to every name (empty, or ending in `/`). */
export async function renderPatch( entries: readonly Entry[], prefix = '', renames: readonly Rename[] = [] ): Promise< RenderedPatch > {
	const start = utf8( prefix );
	const sources = new Set( renames.map( ( rename ) => key( rename.from ) ) );
	const targets = new Map( renames.map( ( rename ) => [ key( rename.to ), rename ] ) );
	const before = new Map( entries.map( ( entry ) => [ key( entry.path ), entry.before ] ) );
	const out: Uint8Array[] = [];
	const stats = new Map< string, FileStats >();
	for ( const entry of entries ) {
		const path = key( entry.path );
		const name = concat( [ start, entry.path ] );
		const old = carried( entry.before );
		const fresh = carried( entry.after );
		const rename = targets.get( path );
		const source = rename ? before.get( key( rename.from ) ) : null;
		if ( sources.has( path ) ) {
			stats.set( path, { kind: 'none' } );
		} else if ( rename && source && fresh ) {
			stats.set( path, await block( out, { old: concat( [ start, rename.from ] ), new: name, similarity: rename.similarity }, source, fresh ) );
		} else {
			const names = { old: name, new: name, similarity: null };
			if ( ! old && ! fresh ) {
				stats.set( path, { kind: 'none' } );
			} else if ( old && fresh && old.type !== fresh.type ) {
				// git describes a file that becomes a link, or the reverse, by two blocks.
				stats.set( path, sum( await block( out, names, old, null ), await block( out, names, null, fresh ) ) );
			} else {
				stats.set( path, await block( out, names, old, fresh ) );
			}
		}
	}
	return { bytes: concat( out ), stats };
}

function carried( node: Node | null ): Node | null {
	return node && 'directory' !== node.type ? node : null;
}

function sum( a: FileStats, b: FileStats ): FileStats {
	return 'text' === a.kind && 'text' === b.kind ? { kind: 'text', insertions: a.insertions + b.insertions, deletions: a.deletions + b.deletions } : { kind: 'binary' };
}

/** Returns whether bytes are rendered as text: UTF-8 without NUL, and not too many lines. */
export function isText( bytes: Uint8Array ): boolean {
	return ! bytes.includes( 0 ) && null !== text( bytes ) && bytes.reduce( ( count, byte ) => count + ( 0x0a === byte ? 1 : 0 ), 0 ) <= MAX_LINES;
}

async function block( out: Uint8Array[], names: Names, before: Node | null, after: Node | null ): Promise< FileStats > {
	const line = ( content: string ) => out.push( utf8( content + '\n' ) );
	line( `diff --git ${ sided( 'a/', names.old ) } ${ sided( 'b/', names.new ) }` );
	let sameMode = '';
	if ( ! before && after ) {
		line( `new file mode ${ after.mode }` );
	} else if ( before && ! after ) {
		line( `deleted file mode ${ before.mode }` );
	} else if ( before && after && before.mode !== after.mode ) {
		line( `old mode ${ before.mode }` );
		line( `new mode ${ after.mode }` );
	} else if ( before ) {
		sameMode = ` ${ before.mode }`;
	}
	if ( null !== names.similarity ) {
		line( `similarity index ${ names.similarity }%` );
		line( `rename from ${ quoteName( names.old ) }` );
		line( `rename to ${ quoteName( names.new ) }` );
	}
	const oldBlob = blob( before );
	const newBlob = blob( after );
	const oldBytes = oldBlob ?? new Uint8Array();
	const newBytes = newBlob ?? new Uint8Array();
	if ( ! isText( oldBytes ) || ! isText( newBytes ) ) {
		if ( ! equal( oldBytes, newBytes ) || ! oldBlob || ! newBlob ) {
			line( `index ${ await blobId( oldBlob ) }..${ await blobId( newBlob ) }${ sameMode }` );
			out.push( binaryPatch( oldBytes, newBytes ) );
		}
		return { kind: 'binary' };
	}
	const made = hunks( oldBytes, newBytes );
	if ( made.bytes.length > 0 ) {
		line( side( '---', 'a/', names.old, before ) );
		line( side( '+++', 'b/', names.new, after ) );
		out.push( made.bytes );
	}
	return { kind: 'text', insertions: made.insertions, deletions: made.deletions };
}

function sided( start: string, name: Uint8Array ): string {
	const full = concat( [ utf8( start ), name ] );
	// git does not quote a trailing space, but GNU patch trims an unquoted one.
	return 0x20 === name[ name.length - 1 ] ? quoted( full ) : quoteName( full );
}

/** Formats a `---` or `+++` line. A name that contains a space ends with a tab: a reader of the patch could take what follows the space for a time stamp. */
function side( sign: string, start: string, name: Uint8Array, node: Node | null ): string {
	return node ? `${ sign } ${ sided( start, name ) }${ name.includes( 0x20 ) ? '\t' : '' }` : `${ sign } /dev/null`;
}
