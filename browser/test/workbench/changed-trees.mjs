/**
 * Changes of files for the tests of patches: named ones, and random ones from fixed seeds.
 */

export const bytes = ( text ) => new TextEncoder().encode( text );
export const file = ( content, mode = '100644' ) => ( { type: 'file', mode, bytes: 'string' === typeof content ? bytes( content ) : content } );
const link = ( target ) => ( { type: 'symlink', mode: '120000', bytes: bytes( target ) } );
const directory = { type: 'directory', mode: '040000' };
const entry = ( path, before, after ) => ( { path: 'string' === typeof path ? bytes( path ) : path, before, after } );

/** Returns numbered lines. */
export const numbered = ( count, text ) => Array.from( { length: count }, ( _, i ) => `${ text( i ) }\n` ).join( '' );

/** Returns a generator of numbers from 0 to below its argument. */
export function random( seed ) {
	let state = seed;
	return ( bound ) => {
		state = ( state * 48271 ) % 2147483647;
		return state % bound;
	};
}

function noise( below, count ) {
	return Uint8Array.from( { length: count }, () => below( 256 ) );
}

/** Changes by name; the texts are those of a modified `f.php`, before and after. */
const TEXTS = {
	'one line': [ 'one\ntwo\nthree\n', 'one\nTWO\nthree\n' ],
	'no line end any more': [ 'a\nb\n', 'a\nb' ],
	'a line end at last': [ 'a\nb', 'a\nb\n' ],
	'no line end before and after': [ 'a\nb', 'a\nc' ],
	'no line end, the last line is unchanged': [ 'a\nb', 'x\nb' ],
	'one line without line end': [ 'a', 'b' ],
	'CR LF': [ 'a\r\nb\r\nc\r\n', 'a\r\nB\r\nc\r\n' ],
	'LF to CR LF': [ 'a\nb\nc\n', 'a\r\nb\r\nc\r\n' ],
	'CR LF at the end only': [ 'a\nb\r\n', 'a\nb\n' ],
	'CR alone': [ 'a\rb\rc', 'a\rB\rc' ],
	'byte order mark': [ 'a\n', '\ufeffa\n' ],
	'other line separators': [ 'a\u2028b\u0085\fc\n', 'a\u2028b\u0085\fd\n' ],
	'emptied file': [ 'a\nb\n', '' ],
	'filled file': [ '', 'a\nb' ],
	'empty lines': [ '\n\n\n', '\n\n' ],
	'lines that look like a patch': [ '--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n\\ No newline at end of file\n', '--- a/y\n+++ b/x\n@@ -1,1 +1,1 @@\n\\ No newline at end of file\ndiff --git a/x b/x\n' ],
	'hunks that touch': [ numbered( 20, ( i ) => i ), numbered( 20, ( i ) => ( [ 5, 12 ].includes( i ) ? `x${ i }` : i ) ) ],
	'hunks apart': [ numbered( 20, ( i ) => i ), numbered( 20, ( i ) => ( [ 5, 13 ].includes( i ) ? `x${ i }` : i ) ) ],
	'60,000 lines': [ numbered( 60_000, ( i ) => `line ${ i }` ), numbered( 60_000, ( i ) => ( 0 === i % 1000 ? `other ${ i }` : `line ${ i }` ) ) ],
	'60,000 lines after ten': [ numbered( 10, ( i ) => `line ${ i }` ), numbered( 60_000, ( i ) => `line ${ i }` ) ],
	'60,000 other lines': [ numbered( 60_000, ( i ) => `line ${ i }` ), numbered( 60_000, ( i ) => `other ${ i }` ).trimEnd() ],
	'200,000 lines': [ numbered( 200_000, ( i ) => i ), numbered( 200_000, ( i ) => ( 150_000 === i ? 'x' : i ) ) ],
	'one line more than is compared': [ numbered( 200_001, ( i ) => i ), numbered( 200_001, ( i ) => ( 150_000 === i ? 'x' : i ) ) ],
};

/** Returns pairs of texts with common lines in difficult places. */
function longTexts() {
	const below = random( 7 );
	const kinds = ( count, many ) => numbered( count, () => `k${ below( many ) }` );
	const lines = ( count ) => numbered( count, ( i ) => `line ${ i }` );
	return {
		'sparse matches': [ lines( 2000 ), numbered( 2000, ( i ) => ( 0 === i % 97 ? `line ${ Math.floor( i / 2 ) }` : `other ${ i }` ) ) ],
		'frequent line between lines without counterpart': [ numbered( 900, ( i ) => ( 10 === i % 20 ? '}' : `a${ i }` ) ), numbered( 900, ( i ) => ( 11 === i % 20 ? '}' : `b${ i }` ) ) ],
		'few old lines': [ kinds( 50, 8 ), `x\n${ kinds( 700, 9 ) }y\n` ],
		'few new lines': [ `x\n${ kinds( 700, 9 ) }y\n`, kinds( 50, 8 ) ],
		'long equal run after an insertion': [ lines( 300 ), `new 1\nnew 2\n${ lines( 200 ) }${ numbered( 900, ( i ) => `tail ${ i % 50 }` ) }` ],
		'long equal run after a deletion': [ `old 1\nold 2\nold 3\n${ lines( 150 ) }${ numbered( 700, ( i ) => `tail ${ i % 30 }` ) }`, `${ lines( 150 ) }end\n` ],
		'noise of few kinds': [ kinds( 1500, 7 ), kinds( 1600, 7 ) ],
		'noise of many kinds': [ kinds( 1400, 600 ), kinds( 1300, 600 ) ],
		'long equal runs in noise': [ kinds( 700, 5 ) + lines( 60 ) + kinds( 700, 5 ), kinds( 650, 5 ) + lines( 60 ) + kinds( 750, 5 ) ],
		'very long equal run in noise': [ kinds( 330, 6 ) + lines( 1500 ) + kinds( 900, 6 ), kinds( 300, 6 ) + lines( 1500 ) + kinds( 950, 6 ) ],
		'runs of a frequent line': [
			numbered( 900, ( i ) => ( i >= 20 && i < 880 && i % 10 < 7 ? '}' : `a${ i }` ) ),
			numbered( 900, ( i ) => ( i >= 20 && i < 880 && i % 10 >= 2 && i % 10 < 9 ? '}' : `b${ i }` ) ),
		],
		'periodic lines after an insertion': [ numbered( 200, ( i ) => `p${ i % 3 }` ), `new\n${ numbered( 150, ( i ) => `p${ i % 3 }` ) }${ numbered( 600, ( i ) => `p${ ( i * i ) % 3 }` ) }` ],
		'noise of two kinds': [ kinds( 3000, 2 ), kinds( 2500, 2 ) ],
	};
}

/** Returns pairs of binary contents. */
function binaries() {
	const below = random( 11 );
	const some = noise( below, 40_000 );
	return {
		'empty to one byte': [ new Uint8Array(), new Uint8Array( 1 ) ],
		'one byte to empty': [ new Uint8Array( 1 ), new Uint8Array() ],
		'lines of all lengths': [ noise( below, 51 ), Uint8Array.from( [ 0, ...noise( below, 52 ) ] ) ],
		'a long run': [ new Uint8Array( 100_000 ), new Uint8Array( 80_000 ).fill( 1, 40_000 ) ],
		'noise of several blocks': [ some, Uint8Array.from( [ ...some.subarray( 0, 33_000 ), ...some.subarray( 0, 9_000 ), 0 ] ) ],
		'latin-1 text': [ Uint8Array.from( [ 0x63, 0x61, 0x66, 0xe9, 0x0a ] ), Uint8Array.from( [ 0xe9, 0x0a ] ) ],
		'text to binary': [ bytes( 'a\n' ), bytes( 'a\0\n' ) ],
		'binary to text': [ bytes( 'a\0\n' ), bytes( 'a\n' ) ],
		'2 MB': [ noise( below, 2_000_000 ), noise( below, 2_000_000 ) ],
		'2 MB that compress': [ new Uint8Array( 2_000_000 ), bytes( 'words and\0words '.repeat( 125_000 ) ) ],
	};
}

const NAMES = [ 'a', 'file.php', 'read me.txt', ' lead', 'trail ', 'x b', 'q"uote', 'back\\slash', 'é', '日本', 'new\nline', 'tab\there', '-dash', '.hidden', '$HOME', '100%', 'z\x01', 'del\x7f', 'b/ü "x"/c d' ].map( bytes );
const NOT_UTF8 = [ Uint8Array.of( 0xff, 0xfe ), Uint8Array.of( 0x61, 0xe9 ) ];

/** Returns the named changes: name, entries. */
export function named() {
	const modified = ( [ before, after ] ) => [ entry( 'f.php', file( before ), file( after ) ) ];
	return [
		...Object.entries( { ...TEXTS, ...longTexts(), ...binaries() } ).map( ( [ name, pair ] ) => [ name, modified( pair ) ] ),
		[ 'empty file created', [ entry( 'f', null, file( '' ) ) ] ],
		[ 'empty file removed', [ entry( 'f', file( '' ), null ) ] ],
		[ 'file created', [ entry( 'd/f', null, file( 'a\nb' ) ) ] ],
		[ 'file removed', [ entry( 'd/f', file( 'a\nb\n' ), null ) ] ],
		[ 'binary file created', [ entry( 'f', null, file( '\0' ) ) ] ],
		[ 'binary file removed', [ entry( 'f', file( '\0' ), null ) ] ],
		[ '60,000 lines created and removed', [ entry( 'a', null, file( numbered( 60_000, ( i ) => i ) ) ), entry( 'b', file( numbered( 60_000, ( i ) => i ) ), null ) ] ],
		[ 'modes', [ entry( 'a', file( 'a\n' ), file( 'a\n', '100755' ) ), entry( 'b', file( 'a\n', '100755' ), file( 'b\n' ) ), entry( 'c', null, file( 'a\n', '100755' ) ), entry( 'd', file( '\0' ), file( '\0', '100755' ) ), entry( 'e', file( '', '100755' ), null ) ] ],
		[ 'links', [ entry( 'a', null, link( 'x y' ) ), entry( 'b', link( 'x' ), link( 'y' ) ), entry( 'c', link( 'x' ), null ), entry( 'd', file( 'a\nb\n' ), link( 'x' ) ), entry( 'e', link( 'x' ), file( '\0' ) ) ] ],
		[ 'a directory takes the place of a file', [ entry( 'a', file( 'a\n' ), null ), entry( 'a/b', null, file( 'b\n' ) ) ] ],
		[ 'a file takes the place of a directory', [ entry( 'a', null, file( 'a\n' ) ), entry( 'a/b', file( 'b\n' ), null ) ] ],
		[ 'empty directories', [ entry( 'a', null, directory ), entry( 'b', file( 'b\n' ), directory ) ] ],
		[ 'nothing', [] ],
		...[ ...NAMES, ...NOT_UTF8 ].map( ( name, at ) => [ `name ${ at }`, [ entry( Uint8Array.of( ...name, 0x31 ), file( 'a\n' ), file( 'b\n' ) ), entry( name, null, file( 'a' ) ), entry( Uint8Array.of( 0x7a, 0x7a, ...name ), file( '\0' ), null ) ].sort( byPath ) ] ),
	];
}

function byPath( a, b ) {
	return Buffer.compare( a.path, b.path );
}

const LINES = [ '<?php', '', '}', '  return 1;', 'diff --git a/x b/x', '--- a/x', '+++ b/x', '@@ -1,1 +1,1 @@', '\\ No newline at end of file', '-- ', 'trailing \t ', 'ünïcode', 'GIT binary patch', 'literal 5' ];

function contents( below ) {
	const ends = [ [ '\r\n' ], [ '\r' ], [ '\n', '\r\n', '\r' ], [ '\n' ], [ '\n' ], [ '\n' ], [ '\n' ] ][ below( 7 ) ];
	const line = () => ( below( 10 ) < 6 ? LINES[ below( LINES.length ) ] : `line ${ below( 50 ) }` );
	const text = Array.from( { length: 0 === below( 10 ) ? 200 : below( 12 ) }, () => line() + ends[ below( ends.length ) ] ).join( '' ) + ( below( 10 ) < 3 ? line() : '' );
	switch ( below( 12 ) ) {
		case 0:
			return bytes( text + '\0' );
		case 1:
			return Uint8Array.from( [ ...bytes( text ), 0xe9, 0x0a ] );
		case 2:
			return noise( below, below( 300 ) );
		case 3:
			return new Uint8Array();
		default:
			return bytes( text );
	}
}

/** Changes some lines, or the end, of contents. */
function mutated( below, before ) {
	const text = Buffer.from( before ).toString( 'latin1' );
	const lines = text.match( /[^\n]*\n|[^\n]+$/g ) ?? [];
	switch ( below( 7 ) ) {
		case 0:
			return Buffer.from( text.endsWith( '\n' ) ? text.slice( 0, -1 ) : text + '\n', 'latin1' );
		case 1:
			return contents( below );
		case 2:
			return Buffer.from( text.replaceAll( '\n', '\r\n' ), 'latin1' );
		default:
			for ( let i = below( 3 ); i >= 0; i-- ) {
				const at = below( lines.length + 1 );
				lines.splice( at, below( 2 ), ...( below( 2 ) ? [ `line ${ below( 50 ) }\n` ] : [] ) );
			}
			return Buffer.from( lines.join( '' ), 'latin1' );
	}
}

/** Returns the random changes of a seed: up to eight entries, each in a directory of its own or at the top. */
export function tree( seed ) {
	const below = random( seed );
	const mode = () => ( 0 === below( 4 ) ? '100755' : '100644' );
	const node = () => ( 0 === below( 6 ) ? link( `x${ below( 9 ) }` ) : file( contents( below ), mode() ) );
	const entries = new Map();
	for ( let i = 1 + below( 8 ); i > 0; i-- ) {
		const name = [ ...NAMES, ...NOT_UTF8 ][ below( NAMES.length + NOT_UTF8.length ) ];
		const path = below( 2 ) ? name : Uint8Array.from( [ ...bytes( 'dir ü/' ), ...name ] );
		const before = below( 4 ) ? node() : null;
		let after = before && 0 === below( 4 ) ? null : node();
		if ( 'file' === before?.type && 'file' === after?.type && below( 4 ) ) {
			after = file( below( 5 ) ? mutated( below, before.bytes ) : before.bytes, mode() );
		}
		if ( ! before || ! after || before.mode !== after.mode || 0 !== Buffer.compare( before.bytes, after.bytes ) ) {
			entries.set( Buffer.from( path ).toString( 'latin1' ), entry( path, before, after ) );
		}
	}
	return [ ...entries.values() ].sort( byPath );
}
