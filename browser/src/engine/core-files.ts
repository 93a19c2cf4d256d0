/** Remembers the static files of the core archive by a checksum, so that edited ones are told from shared ones. */
import { staticType } from './statics.js';
import type { Entries } from './unzip.js';

/** FNV-1a: an edit must be noticed, an attack on one's own sandbox need not. */
function checksum( bytes: Uint8Array ): number {
	let hash = 0x811c9dc5;
	for ( let at = 0; at < bytes.byteLength; at += 1 ) {
		hash = Math.imul( hash ^ ( bytes[ at ] ?? 0 ), 0x01000193 );
	}
	return hash >>> 0;
}

/** Static files of the core archive by site path. */
export class CoreFiles {
	private readonly known = new Map< string, string >();

	remember( entries: Entries ): void {
		for ( const [ name, contents ] of entries ) {
			if ( undefined !== staticType( name ) ) {
				this.known.set( `/${ name }`, `${ contents.byteLength }:${ checksum( contents ) }` );
			}
		}
	}

	/** Whether a file is as the archive had it. */
	unchanged( path: string, contents: Uint8Array ): boolean {
		return this.known.get( path ) === `${ contents.byteLength }:${ checksum( contents ) }`;
	}
}
