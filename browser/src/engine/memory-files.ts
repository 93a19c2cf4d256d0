/**
 * Files in the file system of PHP that are unpacked at their first read.
 *
 * A page of WordPress reads a quarter of the files of core, so the boot neither unpacks nor writes the others, and the tab needs less memory.
 */
import { __private__dont__use as internals, type PHP } from '@php-wasm/universal';
import type { PackedFile } from './packed-files.js';

/** A file in Emscripten's file system in memory (MEMFS), with the fields that MEMFS uses. */
interface MemoryNode {
	contents: unknown;
	usedBytes: number;
	atime: number;
	mtime: number;
	ctime: number;
}

/** Creates files below a directory; each is unpacked when PHP or the page reads or changes it. */
export function placeFiles( php: PHP, directory: string, files: ReadonlyMap< string, PackedFile > ): void {
	const { FS } = ( php as unknown as { [ internals ]: { FS: { lookupPath: ( path: string ) => { node: { node_ops: { mknod: ( parent: unknown, name: string, mode: number, device: number ) => MemoryNode } } } } } } )[ internals ];
	const parents = new Map< string, ReturnType< typeof FS.lookupPath >[ 'node' ] >();
	// OPcache caches no file younger than two seconds, and compares versions of a file by mtime in seconds. So all files get an older mtime, and
	// each a different one: when a file is renamed over another, OPcache notices.
	let time = Date.now() - 10_000;
	for ( const [ name, file ] of files ) {
		const path = `${ directory }/${ name }`;
		const slash = path.lastIndexOf( '/' );
		const parent = path.slice( 0, slash );
		let at = parents.get( parent );
		if ( undefined === at ) {
			php.mkdir( parent );
			at = FS.lookupPath( parent ).node;
			parents.set( parent, at );
		}
		const node = at.node_ops.mknod( at, path.slice( slash + 1 ), 0o100666, 0 );
		node.usedBytes = file.size;
		node.atime = node.mtime = node.ctime = time;
		time -= 1000;
		const replace = ( value: unknown ) => Object.defineProperty( node, 'contents', { value, configurable: true, enumerable: true, writable: true } );
		Object.defineProperty( node, 'contents', {
			configurable: true,
			enumerable: true,
			get: () => {
				replace( file.unpack() );
				return node.contents;
			},
			set: replace,
		} );
	}
}
