import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { bytes, file, named, numbered, tree } from './changed-trees.mjs';
import { apply } from './git.mjs';
import { load, vectors } from './load.mjs';

const { renderPatch } = await load( 'patch/render' );
const { changedFiles } = await load( 'patch/changed-files' );
const { hunks } = await load( 'patch/hunks' );
const { changeSet } = await load( 'changes' );

const MOUNT = { index: 0, target: '/wordpress/wp-content/plugins/a b', prefix: '' };
const TREES = 200;

function cases() {
	return [ ...named(), ...Array.from( { length: TREES }, ( _, at ) => [ `tree ${ at }`, tree( at + 1 ) ] ) ];
}

/** Returns the line counts that the page shows, by the name in the patch; '-' for binary contents. Names with nothing in the patch are left out. */
async function shown( entries, patch ) {
	const rows = await changedFiles( MOUNT, entries, patch );
	return new Map( rows.flatMap( ( row, at ) => ( row.binary ? [ [ at, '-' ] ] : undefined === row.insertions ? [] : [ [ at, [ row.insertions, row.deletions ] ] ] ) ).map( ( [ at, count ] ) => [ Buffer.from( entries[ at ].path ).toString( 'latin1' ), count ] ) );
}

test( 'git apply turns the contents before into the contents after, and counts the lines that the page shows', async () => {
	let all = '';
	for ( const [ name, entries ] of cases() ) {
		const patch = await renderPatch( entries );
		const { got, wanted, numbers } = apply( entries, patch.bytes );
		assert.deepEqual( got, wanted, name );
		const counts = await shown( entries, patch );
		for ( const [ path, count ] of counts ) {
			// git counts no lines of a binary file whose mode alone changes.
			const { before, after } = entries.find( ( entry ) => path === Buffer.from( entry.path ).toString( 'latin1' ) );
			const onlyMode = '-' === count && before && after && before.type === after.type && 0 === Buffer.compare( before.bytes, after.bytes );
			assert.deepEqual( numbers.get( path ), onlyMode ? [ 0, 0 ] : count, `${ name }: ${ path }` );
		}
		assert.equal( numbers.size, counts.size, name );
		all += new TextDecoder().decode( patch.bytes.subarray( 0, 20_000 ) );
	}
	for ( const part of [ 'GIT binary patch', '\\ No newline at end of file', 'old mode 100644', 'new file mode 120000', 'new file mode 100755', 'deleted file mode', '\\303', '\\377', '\\n', '\\"', '\r\n', '--- /dev/null', '+++ /dev/null', '"\n' ] ) {
		assert.ok( all.includes( part ), JSON.stringify( part ) );
	}
} );

test( 'the judge notices a patch that does not fit, gives other contents, or has other line counts', async () => {
	const entries = [ { path: bytes( 'f' ), before: file( '1\n2\n3\n' ), after: file( '1\nx\n3\n' ) } ];
	const patch = await renderPatch( entries );
	const altered = ( from, to ) => apply( entries, new TextDecoder().decode( patch.bytes ).replace( from, to ) );
	const { got, wanted, numbers } = altered( '', '' );
	assert.deepEqual( got, wanted );
	assert.deepEqual( numbers, await shown( entries, patch ) );
	assert.throws( () => altered( ' 3\n', ' 4\n' ) );
	assert.notDeepEqual( altered( '+x\n', '+y\n' ).got, wanted );
	assert.notDeepEqual( altered( /@@ .*\n/, '@@ -1,3 +1,4 @@\n+more\n' ).numbers, numbers );
} );

test( 'the patch and the sums of a change set agree with git', async () => {
	const root = { target: 'plugins/demo', path: '/wordpress/wp-content/plugins/demo', label: 'demo' };
	const changes = [
		{ path: 'plugins/demo/ü "a".php', status: 'modified', before: bytes( '1\n2\n3\n' ), after: bytes( '1\nx\ny' ) },
		{ path: 'plugins/demo/b.bin', status: 'added', after: bytes( '\0' ) },
		{ path: 'plugins/demo/c/d.txt', status: 'deleted', before: bytes( 'a\r\nb\r\n' ) },
	];
	const set = await changeSet( changes, [ root ] );
	const entries = changes.map( ( { path, before, after } ) => ( { path: bytes( path.slice( 'plugins/demo/'.length ) ), before: before ? file( before ) : null, after: after ? file( after ) : null } ) );
	const { got, wanted, numbers } = apply( entries, set.patch );
	assert.deepEqual( got, wanted );
	const sum = ( side ) => [ ...numbers.values() ].reduce( ( total, count ) => total + ( '-' === count ? 0 : count[ side ] ), 0 );
	assert.deepEqual( [ set.insertions, set.deletions ], [ sum( 0 ), sum( 1 ) ] );
	assert.deepEqual( [ set.insertions, set.deletions ], [ 2, 4 ] );
} );

test( 'hunks have three lines of context', () => {
	const { text } = hunks( numbered( 9, ( i ) => i ), numbered( 9, ( i ) => ( 4 === i ? 'x' : i ) ) );
	assert.equal( text, '@@ -2,7 +2,7 @@\n 1\n 2\n 3\n-4\n+x\n 5\n 6\n 7\n' );
	assert.equal( hunks( 'a', '' ).text, '@@ -1,1 +0,0 @@\n-a\n\\ No newline at end of file\n' );
	assert.deepEqual( hunks( 'a', 'a' ), { text: '', insertions: 0, deletions: 0 } );
} );

test( 'hunks of repetitive input finish in bounded time', () => {
	const start = performance.now();
	const made = hunks( numbered( 60_000, ( i ) => i % 7 ), numbered( 60_000, ( i ) => ( i * i + Math.floor( i / 3 ) ) % 7 ) );
	// A comparison without a limit takes minutes.
	assert.ok( performance.now() - start < 15_000 );
	assert.deepEqual( [ made.insertions, made.deletions, made.text.match( /^@@.*$/gm ) ], [ 60_000, 60_000, [ '@@ -1,60000 +1,60000 @@' ] ] );
	const few = hunks( numbered( 60_000, ( i ) => i % 7 ), numbered( 60_000, ( i ) => ( 30_000 === i ? 'x' : i % 7 ) ) );
	assert.deepEqual( [ few.insertions, few.deletions, few.text.match( /^@@.*$/gm ) ], [ 1, 1, [ '@@ -29998,7 +29998,7 @@' ] ] );
} );

test( 'the published example bundle has the patch that this code renders', async () => {
	const entries = [ { path: bytes( 'a.txt' ), before: file( 'one\ntwo\n' ), after: file( 'one\nTWO\n' ) } ];
	const patch = await renderPatch( entries );
	assert.equal( new TextDecoder().decode( patch.bytes ), readFileSync( vectors + 'b1/files/patch.diff', 'utf8' ) );
	const published = JSON.parse( readFileSync( vectors + 'b1/files/changed-files.json', 'utf8' ) ).files[ 0 ];
	const [ row ] = await changedFiles( { index: 0, target: published.mountTarget, prefix: '' }, entries, patch );
	for ( const [ name, value ] of Object.entries( published ) ) {
		assert.deepEqual( row[ name ], value, name );
	}
} );
