/**
 * Rendering of a mount's changes as a patch in git's format.
 *
 * A person reads or downloads it before the upload. ext/core/artifacts/src/patch/render.rs renders the patch of the stored bundle, with the
 * same headers, but other hunks may describe the same change there. Renames are not looked for.
 */
import { concat, equal, key, text, utf8 } from '../bytes';
import { blobId } from '../digests';
import { binaryPatch } from './binary';
import { blob, type Entry, type Node } from './entry';
import { hunks } from './hunks';
import { quoteName, quoted } from './quote';

/** Maximum number of lines of a file that is compared line by line. */
const MAX_LINES = 200_000;

/** What a patch contains for one path; `none` is an empty directory. */
export type FileStats = { readonly kind: 'text'; readonly insertions: number; readonly deletions: number } | { readonly kind: 'binary' } | { readonly kind: 'none' };

/** A patch of one mount, and line counts for each path; keys are those of `key()`. */
export interface RenderedPatch {
	readonly bytes: Uint8Array;
	readonly stats: ReadonlyMap< string, FileStats >;
}

/** Renders the changes of one mount. `prefix` is prepended to every name (empty, or ending in `/`). */
export async function renderPatch( entries: readonly Entry[], prefix = '' ): Promise< RenderedPatch > {
	const start = utf8( prefix );
	const out: Uint8Array[] = [];
	const stats = new Map< string, FileStats >();
	for ( const entry of entries ) {
		const path = key( entry.path );
		const name = concat( [ start, entry.path ] );
		const old = carried( entry.before );
		const fresh = carried( entry.after );
		if ( ! old && ! fresh ) {
			stats.set( path, { kind: 'none' } );
		} else if ( old && fresh && old.type !== fresh.type ) {
			// git describes a file that becomes a link, or the reverse, by two blocks.
			stats.set( path, sum( await block( out, name, old, null ), await block( out, name, null, fresh ) ) );
		} else {
			stats.set( path, await block( out, name, old, fresh ) );
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

/** Returns bytes as the text that is compared line by line: UTF-8 without NUL, and not too many lines. Returns null for other bytes, which are rendered as binary. */
function comparable( bytes: Uint8Array ): string | null {
	return ! bytes.includes( 0 ) && bytes.reduce( ( count, byte ) => count + ( 0x0a === byte ? 1 : 0 ), 0 ) <= MAX_LINES ? text( bytes ) : null;
}

async function block( out: Uint8Array[], name: Uint8Array, before: Node | null, after: Node | null ): Promise< FileStats > {
	const line = ( content: string ) => out.push( utf8( content + '\n' ) );
	line( `diff --git ${ sided( 'a/', name ) } ${ sided( 'b/', name ) }` );
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
	const oldBlob = blob( before );
	const newBlob = blob( after );
	const oldBytes = oldBlob ?? new Uint8Array();
	const newBytes = newBlob ?? new Uint8Array();
	const oldText = comparable( oldBytes );
	const newText = comparable( newBytes );
	if ( null === oldText || null === newText ) {
		if ( ! equal( oldBytes, newBytes ) || ! oldBlob || ! newBlob ) {
			line( `index ${ await blobId( oldBlob ) }..${ await blobId( newBlob ) }${ sameMode }` );
			out.push( binaryPatch( oldBytes, newBytes ) );
		}
		return { kind: 'binary' };
	}
	const made = hunks( oldText, newText );
	if ( '' !== made.text ) {
		line( side( '---', 'a/', name, before ) );
		line( side( '+++', 'b/', name, after ) );
		out.push( utf8( made.text ) );
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
