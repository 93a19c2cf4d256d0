import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { inflateSync } from 'node:zlib';
import { load, vectors } from './load.mjs';

const { renderPatch } = await load( 'patch/render' );
const { findRenames } = await load( 'patch/rename' );
const { changedFiles, changedFilesDocument } = await load( 'patch/changed-files' );
const { contentDigest, sha256, CONTENT_INPUTS } = await load( 'digest/digests' );
const { deflate } = await load( 'patch/deflate' );
const { hunks } = await load( 'patch/hunks' );

const recorded = JSON.parse( readFileSync( vectors + 'patches.json', 'utf8' ) );
const decode = ( base64 ) => new Uint8Array( Buffer.from( base64, 'base64' ) );
const TYPES = { 100644: 'file', 100755: 'file', 120000: 'symlink', '040000': 'directory' };

function node( value ) {
	return value && { type: TYPES[ value.mode ], mode: value.mode, ...( undefined === value.bytes ? {} : { bytes: decode( value.bytes ) } ) };
}

function entriesOf( vector ) {
	return vector.entries.map( ( { path, before, after } ) => ( { path: decode( path ), before: node( before ), after: node( after ) } ) );
}

async function render( vector, prefix = vector.prefix ) {
	const entries = entriesOf( vector );
	const renames = vector.renames ? await findRenames( entries ) : [];
	return { entries, renames, patch: await renderPatch( entries, prefix, renames ) };
}

test( 'patches, changed files and digests equal those that the host renders', async () => {
	assert.ok( recorded.length > 150 );
	for ( const vector of recorded ) {
		const { entries, renames, patch } = await render( vector );
		const mount = { index: 0, target: '/wordpress/wp-content/plugins/a b', prefix: vector.prefix };
		const document = changedFilesDocument( await changedFiles( mount, entries, patch, renames ) );
		assert.deepEqual( { bytes: patch.bytes.length, sha256: await sha256( patch.bytes ) }, vector.patch, `patch of ${ vector.name }` );
		assert.deepEqual( { bytes: document.length, sha256: await sha256( document ) }, vector.changedFiles, `changed files of ${ vector.name }` );
		assert.equal( await contentDigest( [ [ CONTENT_INPUTS[ 0 ], document ], [ CONTENT_INPUTS[ 1 ], patch.bytes ] ] ), vector.contentDigest, vector.name );
	}
} );

test( 'the vectors have each kind of block, rename, mode and name', async () => {
	let all = '';
	for ( const vector of recorded ) {
		all += new TextDecoder().decode( ( await render( vector ) ).patch.bytes );
	}
	for ( const part of [ 'GIT binary patch', '\\ No newline at end of file', 'rename from ', 'similarity index 100%', 'old mode 100644', 'new file mode 120000', 'deleted file mode', '\\303', '\\n', '\r\n', '--- /dev/null', '"\n' ] ) {
		assert.ok( all.includes( part ), JSON.stringify( part ) );
	}
} );

/** Writes one side of the entries into a directory. Names are bytes, so paths are buffers. */
function write( root, entries, side ) {
	for ( const entry of entries ) {
		const value = entry[ side ];
		if ( value ) {
			const path = Buffer.concat( [ Buffer.from( root + '/' ), Buffer.from( entry.path ) ] );
			mkdirSync( path.subarray( 0, path.lastIndexOf( 0x2f ) ), { recursive: true } );
			if ( 'symlink' === value.type ) {
				symlinkSync( Buffer.from( value.bytes ), path );
			} else if ( 'file' === value.type ) {
				writeFileSync( path, value.bytes );
				chmodSync( path, '100755' === value.mode ? 0o755 : 0o644 );
			}
		}
	}
}

/** Returns all files and links below a directory by name. */
function read( root, below = Buffer.alloc( 0 ), found = new Map() ) {
	for ( const name of readdirSync( Buffer.concat( [ Buffer.from( root + '/' ), below ] ), { encoding: 'buffer' } ) ) {
		const relative = Buffer.concat( [ below, name ] );
		const path = Buffer.concat( [ Buffer.from( root + '/' ), relative ] );
		const status = lstatSync( path );
		if ( status.isDirectory() ) {
			read( root, Buffer.concat( [ relative, Buffer.from( '/' ) ] ), found );
		} else {
			const bytes = status.isSymbolicLink() ? readlinkSync( path, { encoding: 'buffer' } ) : readFileSync( path );
			found.set( relative.toString( 'latin1' ), `${ status.isSymbolicLink() ? 'link' : status.mode & 0o111 ? '755' : '644' } ${ bytes.toString( 'base64' ) }` );
		}
	}
	return found;
}

test( 'git apply turns the contents before into the contents after', async () => {
	const root = mkdtempSync( join( tmpdir(), 'workbench-git-' ) );
	const options = { stdio: [ 'pipe', 'pipe', 'pipe' ], env: { PATH: process.env.PATH, GIT_CEILING_DIRECTORIES: root, GIT_CONFIG_NOSYSTEM: '1', HOME: '/nonexistent' } };
	try {
		let applied = 0;
		for ( const [ index, vector ] of recorded.entries() ) {
			const { entries, patch } = await render( vector, '' );
			const [ before, after ] = [ 'before', 'after' ].map( ( side ) => {
				const path = join( root, `${ index }-${ side }` );
				mkdirSync( path );
				write( path, entries, side );
				return path;
			} );
			if ( patch.bytes.length > 0 ) {
				execFileSync( 'git', [ '-c', 'core.autocrlf=false', 'apply', '--whitespace=nowarn', '-' ], { ...options, cwd: before, input: patch.bytes } );
				applied += 1;
			}
			assert.deepEqual( read( before ), read( after ), vector.name );
			rmSync( before, { recursive: true } );
			rmSync( after, { recursive: true } );
		}
		assert.ok( applied > 140 );
	} finally {
		rmSync( root, { recursive: true, force: true } );
	}
} );

test( 'zlib reads what deflate writes', () => {
	let seed = 1;
	const random = () => ( seed = ( seed * 48271 ) % 2147483647 );
	for ( let round = 0; round < 60; round++ ) {
		const kinds = 1 + ( random() % 256 );
		const data = Uint8Array.from( { length: random() % 70_000 }, () => random() % kinds );
		assert.ok( Buffer.from( data ).equals( inflateSync( deflate( data ) ) ), `round ${ round }` );
	}
} );

test( 'hunks of repetitive input finish in bounded time', () => {
	const text = ( line ) => new TextEncoder().encode( Array.from( { length: 60_000 }, ( _, i ) => `${ line( i ) }\n` ).join( '' ) );
	const made = hunks( text( ( i ) => i % 7 ), text( ( i ) => ( i * i + Math.floor( i / 3 ) ) % 7 ) );
	assert.ok( made.insertions > 0 );
} );
