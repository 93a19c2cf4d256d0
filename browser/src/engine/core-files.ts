/** Remembers the static files of the core archive, to distinguish edited files from unchanged ones. */
import type { PackedFile } from './packed-files.js';
import { staticType } from './statics.js';
import { equal } from './unzip.js';

/** Static files of the core archive by site path. */
export class CoreFiles {
	private readonly known = new Map< string, PackedFile >();

	remember( files: ReadonlyMap< string, PackedFile > ): void {
		for ( const [ name, file ] of files ) {
			if ( undefined !== staticType( name ) ) {
				this.known.set( `/${ name }`, file );
			}
		}
	}

	/** Whether a file is as the archive has it. */
	unchanged( path: string, contents: Uint8Array ): boolean {
		const file = this.known.get( path );
		return undefined !== file && file.size === contents.byteLength && equal( file.unpack(), contents );
	}
}
