/**
 * One entry per changed path, with the members that the host writes into `files/changed-files.json`, and in its order.
 */
import { compare, concat, key, text, utf8 } from '../bytes';
import { sha256 } from '../digests';
import { blob, type Entry, type Node } from './entry';
import { quoteName } from './quote';
import type { RenderedPatch } from './render';

/** Position, guest path and patch prefix of one mount. */
export interface Mount {
	readonly index: number;
	/** Path of the mount in the guest, without a slash at its end. */
	readonly target: string;
	/** Empty when no other mount has changes, otherwise the target without its leading slash, followed by a slash. */
	readonly prefix: string;
}

/** One entry of the document. */
export interface ChangedFile {
	readonly path: string;
	readonly relativePath: string;
	readonly status: 'added' | 'modified' | 'deleted';
	readonly type: Node[ 'type' ];
	readonly beforeSha256?: string;
	readonly beforeMode?: string;
	readonly afterSha256?: string;
	readonly afterMode?: string;
	readonly binary?: true;
	readonly insertions?: number;
	readonly deletions?: number;
	readonly mountIndex: number;
	readonly mountTarget: string;
	readonly patchName: string;
	readonly patchPath: string;
	readonly pathEncoding?: 'git-quoted';
}

/** Sorts entries by the bytes of their paths, the order of the document. */
export function sorted( entries: readonly Entry[] ): Entry[] {
	return [ ...entries ].sort( ( a, b ) => compare( a.path, b.path ) );
}

/** Returns the entries of the document for one mount, in the order of the changes. */
export async function changedFiles( mount: Mount, entries: readonly Entry[], patch: RenderedPatch ): Promise< ChangedFile[] > {
	const declared = ( path: Uint8Array ) => documentName( concat( [ utf8( mount.target + '/' ), path ] ) );
	const out: ChangedFile[] = [];
	for ( const { path, before, after } of entries ) {
		const [ name, isQuoted ] = declared( path );
		const stats = patch.stats.get( key( path ) );
		const beforeBlob = blob( before );
		const afterBlob = blob( after );
		out.push( {
			path: name,
			relativePath: documentName( path )[ 0 ],
			status: ! before ? 'added' : after ? 'modified' : 'deleted',
			type: ( after ?? before )!.type,
			...( beforeBlob ? { beforeSha256: await sha256( beforeBlob ) } : {} ),
			...( before ? { beforeMode: before.mode } : {} ),
			...( afterBlob ? { afterSha256: await sha256( afterBlob ) } : {} ),
			...( after ? { afterMode: after.mode } : {} ),
			...( 'binary' === stats?.kind ? { binary: true } : {} ),
			...( 'text' === stats?.kind ? { insertions: stats.insertions, deletions: stats.deletions } : {} ),
			mountIndex: mount.index,
			mountTarget: mount.target,
			patchName: documentName( concat( [ utf8( mount.prefix ), path ] ) )[ 0 ],
			patchPath: `files/diffs/mount-${ mount.index }.patch`,
			...( isQuoted ? { pathEncoding: 'git-quoted' as const } : {} ),
		} );
	}
	return out;
}

/** Returns a path as documents contain it, and whether it is quoted because it is not UTF-8. */
function documentName( path: Uint8Array ): readonly [ string, boolean ] {
	const decoded = text( path );
	return null === decoded ? [ quoteName( path ), true ] : [ decoded, false ];
}
