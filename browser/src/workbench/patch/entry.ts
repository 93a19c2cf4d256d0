/**
 * What changed at one path.
 */

/** Type and content of a file system entry, with the mode that git stores. */
export type Node =
	| { readonly type: 'file'; readonly bytes: Uint8Array; readonly mode: '100644' | '100755' }
	| { readonly type: 'symlink'; readonly bytes: Uint8Array; readonly mode: '120000' }
	| { readonly type: 'directory'; readonly mode: '040000' };

/** One changed path below a mount. Entries are sorted by the bytes of their paths. */
export interface Entry {
	readonly path: Uint8Array;
	/** Null when the path did not exist before. */
	readonly before: Node | null;
	/** Null when the path does not exist any more. */
	readonly after: Node | null;
}

/** Returns what git stores for an entry: contents of a file or target of a link; null for a directory. */
export function blob( node: Node | null ): Uint8Array | null {
	return node && 'directory' !== node.type ? node.bytes : null;
}

/** Returns a regular file that is not executable. */
export function file( bytes: Uint8Array ): Node {
	return { type: 'file', bytes, mode: '100644' };
}
