import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { load } from './load.mjs';

const { changeSet, directoryOf, upload, pathOf, rootOf } = await load( 'changes' );

const bytes = ( text ) => new TextEncoder().encode( text );
const root = ( target ) => ( { target, path: `/wordpress/wp-content/${ target }`, label: target } );
const modified = ( path, before, after ) => ( { path, status: 'modified', before: bytes( before ), after: bytes( after ) } );
const patchOf = ( { patch } ) => new TextDecoder().decode( patch );

test( 'the names in a patch are relative to the only root, or begin with its path when there are several', async () => {
	const changes = [ modified( 'plugins/demo/b.php', '1\n', '2\n' ), modified( 'plugins/demo/a.php', '1\n', '2\n' ) ];
	const one = await changeSet( changes, [ root( 'plugins/demo' ) ] );
	assert.deepEqual( patchOf( one ).match( /^diff .*$/gm ), [ 'diff --git a/a.php b/a.php', 'diff --git a/b.php b/b.php' ] );
	const two = await changeSet( [ ...changes, modified( 'themes/x/style.css', 'a\n', 'b\n' ) ], [ root( 'plugins/demo' ), root( 'themes/x' ) ] );
	assert.deepEqual( patchOf( two ).match( /^diff .*$/gm )[ 2 ], 'diff --git a/wordpress/wp-content/themes/x/style.css b/wordpress/wp-content/themes/x/style.css' );
	assert.deepEqual( two.files.map( ( { file } ) => file.mountIndex ), [ 0, 0, 1 ] );
	assert.notEqual( one.digest, two.digest );
} );

test( 'a plugin of one file is mounted as its directory', async () => {
	const set = await changeSet( [ modified( 'plugins/hello.php', '1\n', '2\n' ) ], [ root( 'plugins/hello.php' ) ] );
	assert.equal( set.files[ 0 ].file.path, '/wordpress/wp-content/plugins/hello.php' );
	assert.match( patchOf( set ), /^diff --git a\/hello\.php b\/hello\.php\n/ );
	assert.deepEqual( [ 'plugins/hello.php', 'plugins/demo' ].map( ( target ) => directoryOf( root( target ) ) ), [ '/wordpress/wp-content/plugins', '/wordpress/wp-content/plugins/demo' ] );
} );

test( 'plugins of one file share a mount, beside that of a plugin with a directory', async () => {
	const changes = [ modified( 'plugins/z.php', '1\n', '2\n' ), modified( 'plugins/demo/a.php', '1\n', '2\n' ), modified( 'plugins/b.php', '1\n', '2\n' ) ];
	const set = await changeSet( changes, [ root( 'plugins/z.php' ), root( 'plugins/demo' ), root( 'plugins/b.php' ) ] );
	assert.deepEqual( set.files.map( ( { target, file } ) => [ target, file.mountIndex, file.mountTarget ] ), [
		[ 'plugins/b.php', 0, '/wordpress/wp-content/plugins' ],
		[ 'plugins/z.php', 0, '/wordpress/wp-content/plugins' ],
		[ 'plugins/demo/a.php', 1, '/wordpress/wp-content/plugins/demo' ],
	] );
} );

test( 'a file that was rendered before gives the same bytes, and a changed one gives new bytes', async () => {
	const rendered = new Map();
	const roots = [ root( 'plugins/demo' ) ];
	const first = await changeSet( [ modified( 'plugins/demo/a.php', '1\n', '2\n' ), modified( 'plugins/demo/b.php', '1\n', '2\n' ) ], roots, rendered );
	const again = await changeSet( [ modified( 'plugins/demo/a.php', '1\n', '2\n' ), modified( 'plugins/demo/b.php', '1\n', '2\n' ) ], roots, rendered );
	assert.equal( again.digest, first.digest );
	assert.equal( rendered.size, 2 );
	const other = await changeSet( [ modified( 'plugins/demo/a.php', '1\n', '3\n' ) ], roots, rendered );
	assert.match( patchOf( other ), /\+3\n$/ );
	assert.equal( rendered.size, 1 );
} );

test( 'the digest is that of the paths and hashes of all changed files', async () => {
	const hash = ( text ) => createHash( 'sha256' ).update( text ).digest( 'hex' );
	const changes = [ modified( 'plugins/demo/ü "b".php', '1\n', 'é' ), { path: 'plugins/demo/a', status: 'added', after: new Uint8Array() }, { path: 'plugins/demo/c', status: 'deleted', before: bytes( 'x' ) } ];
	const { digest } = await changeSet( changes, [ root( 'plugins/demo' ) ] );
	const path = ( name ) => `/wordpress/wp-content/plugins/demo/${ name }`;
	assert.equal( digest, hash( JSON.stringify( [ [ path( 'a' ), null, hash( '' ) ], [ path( 'c' ), hash( 'x' ), null ], [ path( 'ü "b".php' ), hash( '1\n' ), hash( 'é' ) ] ] ) ) );
	for ( const other of [ changes.slice( 1 ), [ modified( 'plugins/demo/ü "b".php', '1\n', 'e' ), ...changes.slice( 1 ) ], [ modified( 'plugins/demo/ü "b".php', '2\n', 'é' ), ...changes.slice( 1 ) ] ] ) {
		assert.notEqual( ( await changeSet( other, [ root( 'plugins/demo' ) ] ) ).digest, digest );
	}
} );

test( 'an upload has the contents of changed files and the names of deleted ones', async () => {
	const set = await changeSet( [ modified( 'plugins/demo/a.php', '1', 'é' ), { path: 'plugins/demo/b.php', status: 'deleted', before: bytes( 'x' ) }, { path: 'plugins/demo/c', status: 'added', after: new Uint8Array() } ], [ root( 'plugins/demo' ) ] );
	assert.deepEqual( upload( set ), { files: [ { path: 'plugins/demo/a.php', content_base64: 'w6k=' }, { path: 'plugins/demo/c', content_base64: '' } ], deleted: [ 'plugins/demo/b.php' ] } );
	assert.deepEqual( set.files.map( ( { file } ) => file.status ), [ 'modified', 'deleted', 'added' ] );
} );

test( 'names below wp-content and paths of the sandbox name the same file', () => {
	const roots = [ root( 'plugins/demo' ), root( 'plugins/demo-two' ) ];
	assert.equal( pathOf( 'plugins/demo-two/a', roots ), '/wordpress/wp-content/plugins/demo-two/a' );
	assert.equal( rootOf( '/wordpress/wp-content/plugins/demo-two/a', roots ).target, 'plugins/demo-two' );
	assert.equal( pathOf( 'plugins/other/a', roots ), null );
	assert.equal( rootOf( '/tmp/a', roots ), null );
} );
