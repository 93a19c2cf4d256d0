/** The table of contents of an archive whose files are unpacked one by one. */
import { inflateSync } from 'fflate';
import { checkName, checkSize, unreadable } from './unzip.js';

/** One file of an archive. */
export interface PackedFile {
	/** Bytes after unpacking. */
	size: number;
	/** Returns the contents, each time in a new buffer. */
	unpack: () => Uint8Array;
}

const endRecord = 0x06054b50, centralHeader = 0x02014b50;

/** Reads the central directory of a zip; zip64 is not supported. Entries of directories are left out. */
export function indexZip( bytes: Uint8Array, name: string ): Map< string, PackedFile > {
	const files = new Map< string, PackedFile >();
	const view = new DataView( bytes.buffer, bytes.byteOffset, bytes.byteLength );
	let end = bytes.byteLength - 22;
	const decoder = new TextDecoder();
	let total = 0;
	try {
		// A comment of at most 65,535 bytes may follow the end record.
		const first = Math.max( 0, end - 0xffff );
		while ( endRecord !== view.getUint32( end, true ) ) {
			if ( end <= first ) {
				throw new RangeError( 'its end record is missing' );
			}
			end -= 1;
		}
		const count = view.getUint16( end + 10, true );
		let at = view.getUint32( end + 16, true );
		for ( let number = 0; number < count; number += 1 ) {
			const method = view.getUint16( at + 10, true );
			if ( centralHeader !== view.getUint32( at, true ) || ( 0 !== method && 8 !== method ) ) {
				throw new RangeError( `entry ${ number } cannot be unpacked` );
			}
			const [ packed, size, local ] = [ view.getUint32( at + 20, true ), view.getUint32( at + 24, true ), view.getUint32( at + 42, true ) ];
			const nameLength = view.getUint16( at + 28, true );
			const path = decoder.decode( bytes.subarray( at + 46, at + 46 + nameLength ) );
			at += 46 + nameLength + view.getUint16( at + 30, true ) + view.getUint16( at + 32, true );
			total += size;
			checkSize( total, name );
			if ( path.endsWith( '/' ) ) {
				continue;
			}
			checkName( path, name );
			const begin = local + 30 + view.getUint16( local + 26, true ) + view.getUint16( local + 28, true );
			if ( begin + packed > end ) {
				throw new RangeError( `entry ${ number } is cut off` );
			}
			const data = bytes.subarray( begin, begin + packed );
			files.set( path, { size, unpack: () => ( 0 === method ? data.slice() : inflateSync( data, { out: new Uint8Array( size ) } ) ) } );
		}
	} catch ( thrown ) {
		throw thrown instanceof RangeError ? unreadable( name, thrown.message ) : thrown;
	}
	return files;
}
