import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { load, vectors } from './load.mjs';

const { canonicalJson } = await load( 'digest/canonical' );
const { contentDigest, fileListDigest, manifestSelfHash, sha256, CONTENT_INPUTS } = await load( 'digest/digests' );
const { renderPatch } = await load( 'patch/render' );
const { changedFiles, changedFilesDocument } = await load( 'patch/changed-files' );

const recorded = JSON.parse( readFileSync( vectors + 'digest-vectors.json', 'utf8' ) );
const bytes = ( text ) => new TextEncoder().encode( text );
const hash = ( text ) => sha256( bytes( text ) );
const nested = ( levels ) => {
	let value = 'leaf';
	for ( let i = 0; i < levels; i++ ) {
		value = { k: value };
	}
	return value;
};

test( 'canonical JSON matches the recorded vectors', async () => {
	assert.equal( recorded.stableJson.length, 4 );
	for ( const row of recorded.stableJson ) {
		for ( const over of [ 'refuse', 'drop' ] ) {
			assert.equal( canonicalJson( row.input, over ), row.output );
		}
		assert.equal( await hash( row.output ), row.sha256 );
	}
} );

test( 'values beyond the limits are dropped as recorded, or refused', async () => {
	for ( const name of [ 'depth', 'depth30' ] ) {
		assert.equal( canonicalJson( nested( recorded[ name ].nesting ), 'drop' ), recorded[ name ].output );
	}
	const keys = Object.fromEntries( Array.from( { length: 301 }, ( _, i ) => [ 'k' + String( i ).padStart( 3, '0' ), i ] ) );
	assert.equal( canonicalJson( keys, 'drop' ).length, recorded.keys301.length );
	assert.equal( await hash( canonicalJson( keys, 'drop' ) ), recorded.keys301.sha256 );
	const items = Array.from( { length: 2001 }, ( _, i ) => i );
	assert.equal( await hash( canonicalJson( items, 'drop' ) ), recorded.items2001.sha256 );
	for ( const value of [ keys, items, nested( 31 ) ] ) {
		assert.throws( () => canonicalJson( value ), { code: 'wp_codebox_input_invalid' } );
	}
	assert.ok( canonicalJson( nested( 30 ) ) );
} );

test( 'file list digests match the recorded vectors', async () => {
	for ( const name of [ 'fileListRich', 'fileListEmpty', 'fileListManifestOnly' ] ) {
		assert.equal( await fileListDigest( recorded[ name ].files ), recorded[ name ].digest, name );
	}
	assert.equal( await hash( 'wp-codebox/artifact-manifest-file-list/v1\n' + recorded.fileListRich.preimageSuffix ), recorded.fileListRich.digest );
} );

test( 'the hash of a manifest over itself matches the recorded vector in any order of its keys', async () => {
	const { manifest, digest, preimageSuffix } = recorded.selfRich;
	assert.equal( await manifestSelfHash( manifest, 'manifest.json' ), digest );
	assert.equal( await manifestSelfHash( Object.fromEntries( Object.entries( manifest ).reverse() ), 'manifest.json' ), digest );
	assert.equal( await hash( 'wp-codebox/artifact-manifest-self/v1\n' + preimageSuffix ), digest );
} );

test( 'content digests match the recorded vectors', async () => {
	const read = ( name ) => [ name, new Uint8Array( readFileSync( vectors + 'c1/' + name ) ) ];
	const [ a, b ] = [ read( 'a.bin' ), read( 'd/b.txt' ) ];
	const { inputsAB, inputsBA, single, none } = recorded.contentV1;
	assert.equal( await contentDigest( [ a, b ] ), inputsAB );
	assert.equal( await contentDigest( [ b, a ] ), inputsBA );
	assert.equal( await contentDigest( [ a ] ), single );
	assert.equal( await contentDigest( [] ), none );
	assert.equal(
		await contentDigest( [ [ CONTENT_INPUTS[ 0 ], changedFilesDocument( [] ) ], [ CONTENT_INPUTS[ 1 ], new Uint8Array() ] ] ),
		'e10d3d4a1ea610a9f7bb8dab0bea5847945160c612172eca06fa3cff35f8ab56'
	);
} );

test( 'the published example bundle has the patch that this code renders', async () => {
	const file = ( text ) => ( { type: 'file', bytes: bytes( text ), mode: '100644' } );
	const entries = [ { path: bytes( 'a.txt' ), before: file( 'one\ntwo\n' ), after: file( 'one\nTWO\n' ) } ];
	const patch = await renderPatch( entries );
	assert.equal( new TextDecoder().decode( patch.bytes ), readFileSync( vectors + 'b1/files/patch.diff', 'utf8' ) );
	const published = JSON.parse( readFileSync( vectors + 'b1/files/changed-files.json', 'utf8' ) ).files[ 0 ];
	const [ row ] = await changedFiles( { index: 0, target: published.mountTarget, prefix: '' }, entries, patch );
	for ( const [ name, value ] of Object.entries( published ) ) {
		assert.deepEqual( row[ name ], value, name );
	}
} );
