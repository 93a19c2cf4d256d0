/**
 * The digests of a bundle, and the exact bytes that each covers: SHA-256 over a line that names the kind of digest,
 * followed by the data. ext/core/artifacts/src/digest.rs is the same in Rust.
 */
import { concat, hex, utf8 } from '../bytes';
import { canonicalJson, type OverLimit } from './canonical';

/** The two files whose bytes give the id of a bundle. */
export const CONTENT_INPUTS = [ 'files/changed-files.json', 'files/patch.diff' ] as const;

const CONTENT_PREFIX = 'wp-codebox/artifact-content/v1\n';
const FILE_LIST_PREFIX = 'wp-codebox/artifact-manifest-file-list/v1\n';
const SELF_PREFIX = 'wp-codebox/artifact-manifest-self/v1\n';
const FILE_LIST_KEYS = [ 'path', 'kind', 'contentType', 'redaction', 'provenance', 'viewer' ];

type Row = Readonly< Record< string, unknown > >;

async function digest( algorithm: 'SHA-1' | 'SHA-256', bytes: Uint8Array ): Promise< string > {
	return hex( new Uint8Array( await crypto.subtle.digest( algorithm, bytes as Uint8Array< ArrayBuffer > ) ) );
}

/** Returns the SHA-256 of bytes. */
export function sha256( bytes: Uint8Array ): Promise< string > {
	return digest( 'SHA-256', bytes );
}

/** Returns the id that git gives to a blob with these contents; zeros when there is no blob. */
export function blobId( bytes: Uint8Array | null ): Promise< string > {
	return null === bytes ? Promise.resolve( '0'.repeat( 40 ) ) : digest( 'SHA-1', concat( [ utf8( `blob ${ bytes.length }\0` ), bytes ] ) );
}

/** Returns the content digest (version 1) over pairs of path and content, in the given order. */
export function contentDigest( inputs: ReadonlyArray< readonly [ string, Uint8Array ] > ): Promise< string > {
	const parts = [ utf8( CONTENT_PREFIX ) ];
	inputs.forEach( ( [ path, bytes ], index ) => {
		parts.push( utf8( `${ index > 0 ? '\n' : '' }${ path }\n` ), bytes );
	} );
	return sha256( concat( parts ) );
}

/** Returns the digest over a manifest's list of files without their hashes. */
export function fileListDigest( files: readonly Row[], over: OverLimit = 'refuse' ): Promise< string > {
	const rows = files.map( ( file ) => Object.fromEntries( FILE_LIST_KEYS.filter( ( name ) => name in file ).map( ( name ) => [ name, file[ name ] ] ) ) );
	return sha256( utf8( FILE_LIST_PREFIX + canonicalJson( rows, over ) ) );
}

/** Returns the hash of a manifest in which zeros replace the hash in the manifest's own entry. */
export function manifestSelfHash( manifest: Row, path: string, over: OverLimit = 'refuse' ): Promise< string > {
	const zero = { algorithm: 'sha256', value: '0'.repeat( 64 ) };
	const files = Array.isArray( manifest.files ) ? ( manifest.files as Row[] ).map( ( file ) => ( path === file.path ? { ...file, sha256: zero } : file ) ) : manifest.files;
	return sha256( utf8( SELF_PREFIX + canonicalJson( { ...manifest, files }, over ) ) );
}
