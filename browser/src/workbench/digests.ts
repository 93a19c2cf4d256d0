/**
 * SHA-256 of contents, and ids of git.
 */
import { concat, hex, utf8 } from './bytes';

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
