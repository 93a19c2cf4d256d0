import assert from 'node:assert/strict';
import test from 'node:test';
import { fakeClient } from './fake-client.mjs';
import { load } from './load.mjs';

const { EventBus } = await load( 'bus' );
const { Runtime } = await load( 'runtime' );
const { ToolRegistry, RUN_TERMINAL_COMMAND, terminalCommand } = await load( 'tools' );
const { words } = await load( 'command-line' );
const { resolve } = await load( 'paths' );
const { normalized, restored } = await load( 'line-endings' );

const ROOT = '/wordpress/wp-content/plugins/demo';

/** Returns a bus with a runtime, the log of their events, and errors that handlers threw. */
function session( archive = { [ `${ ROOT }/demo.php` ]: '<?php\n' }, hooks = {} ) {
	const log = [];
	const thrown = [];
	const bus = new EventBus( ( error ) => thrown.push( error ) );
	for ( const type of [ 'RUNTIME_READY', 'RUNTIME_OUTPUT', 'RUNTIME_EXIT' ] ) {
		bus.subscribe( type, ( { event } ) => log.push( event ), { observer: true } );
	}
	const runtime = new Runtime( bus, {
		mounted: ( path ) => log.push( { type: 'mounted', path } ),
		notMounted: ( path, why ) => log.push( { type: 'not mounted', path, code: why.code } ),
		started: ( id, command, args ) => log.push( { type: 'started', id, line: [ command, ...args ].join( ' ' ) } ),
		changed: () => {},
	} );
	const client = fakeClient( archive, hooks );
	return { bus, runtime, client, log, thrown, output: () => log.filter( ( { type } ) => 'RUNTIME_OUTPUT' === type ).map( ( { payload } ) => payload.data ).join( '' ) };
}

const sync = ( path, content ) => ( { type: 'SYSTEM_FILE_SYNC', payload: { path, content } } );
const exec = ( command, args, executionId ) => ( { type: 'AGENT_EXEC_CMD', payload: { command, args, ...( executionId ? { executionId } : {} ) } } );

test( 'a file that is synchronised before the runtime is ready is there for the command after it', async () => {
	const { bus, runtime, client, log, output } = session();
	bus.emit( sync( 'test.txt', 'hello' ) );
	bus.emit( exec( 'cat', [ 'test.txt' ] ) );
	assert.deepEqual( log, [] );
	runtime.connect( client, [ ROOT ] );
	await runtime.idle();
	assert.equal( output(), 'hello' );
	assert.deepEqual( log.map( ( { type } ) => type ), [ 'RUNTIME_READY', 'mounted', 'started', 'RUNTIME_OUTPUT', 'RUNTIME_EXIT' ] );
	assert.equal( log[ 1 ].path, 'test.txt' );
} );

test( 'the working directory can be another one than the first root', async () => {
	const { bus, runtime, client, log } = session();
	const roots = [ `${ ROOT }/demo.php` ];
	runtime.connect( client, roots, ROOT );
	bus.emit( sync( 'beside.txt', 'x' ) );
	bus.emit( exec( 'cat', [ 'demo.php' ] ) );
	await runtime.idle();
	assert.ok( await client.fileExists( `${ ROOT }/beside.txt` ) );
	assert.deepEqual( log.filter( ( { type } ) => 'RUNTIME_EXIT' === type ).map( ( { payload } ) => payload.exitCode ), [ 0 ] );
	assert.deepEqual( log[ 0 ].payload.roots, roots );
} );

test( 'files and commands keep their order before and after the runtime is ready, and none is lost', async () => {
	const { bus, runtime, client, output, log } = session();
	for ( let i = 0; i < 20; i++ ) {
		bus.emit( sync( 'n.txt', `${ i } ` ) );
		bus.emit( exec( 'cat', [ 'n.txt' ] ) );
		if ( 9 === i ) {
			runtime.connect( client, [ ROOT ] );
		}
	}
	await runtime.idle();
	assert.equal( output(), Array.from( { length: 20 }, ( _, i ) => `${ i } ` ).join( '' ) );
	assert.equal( log.filter( ( { type } ) => 'mounted' === type ).length, 20 );
} );

test( 'events that are emitted while the runtime is disconnected wait for the next one', async () => {
	const { bus, runtime, client, output } = session();
	runtime.connect( client, [ ROOT ] );
	runtime.disconnect();
	bus.emit( sync( 'late.txt', 'late' ) );
	await runtime.idle();
	assert.equal( client.files.has( `${ ROOT }/late.txt` ), false );
	runtime.connect( client, [ ROOT ] );
	bus.emit( exec( 'cat', [ 'late.txt' ] ) );
	await runtime.idle();
	assert.equal( output(), 'late' );
} );

test( 'a handler that throws or rejects stops no other handler', async () => {
	const { bus, thrown } = session();
	const seen = [];
	bus.subscribe( 'RUNTIME_READY', () => {
		throw new Error( 'one' );
	} );
	bus.subscribe( 'RUNTIME_READY', async () => {
		throw new Error( 'two' );
	} );
	bus.subscribe( 'RUNTIME_READY', () => seen.push( 'three' ) );
	bus.emit( { type: 'RUNTIME_READY', payload: { roots: [], execution: 'browser-playground' } } );
	await Promise.resolve();
	assert.deepEqual( seen, [ 'three' ] );
	assert.deepEqual( thrown.map( ( { message } ) => message ), [ 'one', 'two' ] );
} );

test( 'an event that a handler emits comes after the event that is being delivered, for every handler', () => {
	const { bus } = session();
	const seen = [];
	const output = ( data ) => ( { type: 'RUNTIME_OUTPUT', payload: { executionId: 'x', stream: 'stdout', data } } );
	bus.subscribe( 'RUNTIME_OUTPUT', ( { event } ) => 'a' === event.payload.data && bus.emit( output( 'b' ) ) );
	bus.subscribe( 'RUNTIME_OUTPUT', ( { event } ) => seen.push( event.payload.data ) );
	bus.emit( output( 'a' ) );
	assert.deepEqual( seen, [ 'a', 'b' ] );
} );

test( 'envelopes have different ids, a time, and a payload that handlers cannot change', () => {
	const { bus } = session();
	const envelopes = [];
	bus.subscribe( 'RUNTIME_OUTPUT', ( envelope ) => envelopes.push( envelope ) );
	const ids = [ 1, 2 ].map( () => bus.emit( { type: 'RUNTIME_OUTPUT', payload: { executionId: 'x', stream: 'stdout', data: '' } } ) );
	assert.deepEqual( envelopes.map( ( { id } ) => id ), ids );
	assert.notEqual( ids[ 0 ], ids[ 1 ] );
	assert.ok( ! Number.isNaN( Date.parse( envelopes[ 0 ].time ) ) );
	assert.throws( () => {
		'use strict';
		envelopes[ 0 ].event.payload.data = 'other';
	}, TypeError );
} );

test( 'an unsubscribed handler gets nothing more', () => {
	const { bus } = session();
	let count = 0;
	const end = bus.subscribe( 'RUNTIME_READY', () => ( count += 1 ) );
	const ready = { type: 'RUNTIME_READY', payload: { roots: [], execution: 'browser-playground' } };
	bus.emit( ready );
	end();
	bus.emit( ready );
	assert.equal( count, 1 );
} );

test( 'events of unknown type or shape are refused, and correct ones are taken', () => {
	const { bus } = session();
	for ( const event of [ null, { type: 'OTHER', payload: {} }, { type: 'SYSTEM_FILE_SYNC', payload: { path: 1, content: '' } }, { type: 'SYSTEM_FILE_SYNC', payload: { path: 'a' } }, exec( 'ls', [ 1 ] ), exec( 'ls', 'x' ), { type: 'AGENT_EXEC_CMD', payload: null } ] ) {
		assert.throws( () => bus.emit( event ), { code: 'wp_codebox_input_invalid' }, JSON.stringify( event ) );
	}
	assert.throws( () => bus.subscribe( 'OTHER', () => {} ), { code: 'wp_codebox_input_invalid' } );
	assert.ok( bus.emit( exec( 'ls' ) ) );
} );

test( 'output and exit have the execution id that the command brought, or one of their own', async () => {
	const { bus, runtime, client, log } = session();
	runtime.connect( client, [ ROOT ] );
	bus.emit( exec( 'cat', [ 'demo.php' ], 'mine' ) );
	bus.emit( exec( 'cat', [ 'demo.php' ] ) );
	bus.emit( exec( 'cat', [ 'demo.php' ] ) );
	await runtime.idle();
	const ids = log.filter( ( { type } ) => 'RUNTIME_EXIT' === type ).map( ( { payload } ) => payload.executionId );
	assert.equal( ids[ 0 ], 'mine' );
	assert.equal( new Set( ids ).size, 3 );
	assert.deepEqual( log.filter( ( { type } ) => 'RUNTIME_OUTPUT' === type ).map( ( { payload } ) => payload.executionId ), ids );
} );

test( 'an unsupported command ends with status 127 and its reason, and the next command runs', async () => {
	const { bus, runtime, client, log } = session();
	runtime.connect( client, [ ROOT ] );
	bus.emit( exec( 'npm', [ 'install' ] ) );
	bus.emit( exec( 'ls', [] ) );
	await runtime.idle();
	const [ first, second ] = log.filter( ( { type } ) => 'RUNTIME_EXIT' === type ).map( ( { payload } ) => payload );
	assert.equal( first.exitCode, 127 );
	assert.equal( first.error.code, 'wp_codebox_browser_command_unsupported' );
	assert.match( log.find( ( { type } ) => 'RUNTIME_OUTPUT' === type ).payload.data, /not supported Use php\.\n$/ );
	assert.equal( second.exitCode, 0 );
} );

test( 'a file that cannot be written is reported, and the files after it are written', async () => {
	const { bus, runtime, client, log } = session();
	runtime.connect( client, [ ROOT ] );
	bus.emit( sync( '../../../escape.txt', 'x' ) );
	bus.emit( sync( 'a/../fine.txt', 'x' ) );
	await runtime.idle();
	assert.deepEqual( log.filter( ( { type } ) => type.endsWith( 'mounted' ) ), [ { type: 'not mounted', path: '../../../escape.txt', code: 'wp_codebox_input_invalid' }, { type: 'mounted', path: 'fine.txt' } ] );
} );

test( 'a file that the tree announces is not written again when it exists', async () => {
	const { bus, runtime, client } = session();
	bus.emit( exec( 'write', [ 'demo.php', 'newer' ] ) );
	bus.emit( { type: 'SYSTEM_FILE_SYNC', payload: { path: 'demo.php', content: 'older', source: 'tree' } } );
	runtime.connect( client, [ ROOT ] );
	await runtime.idle();
	assert.equal( await client.readFileAsText( `${ ROOT }/demo.php` ), 'newer' );
	bus.emit( sync( 'demo.php', 'from the host' ) );
	await runtime.idle();
	assert.equal( await client.readFileAsText( `${ ROOT }/demo.php` ), 'from the host' );
} );

test( 'run_terminal_command returns output and exit status of its own command only', async () => {
	const { bus, runtime, client } = session();
	const tools = new ToolRegistry();
	tools.register( RUN_TERMINAL_COMMAND, terminalCommand( bus, runtime ) );
	const before = tools.call( 'run_terminal_command', { command: 'cat', args: [ 'demo.php' ] } );
	bus.emit( exec( 'cat', [ 'demo.php' ] ) );
	runtime.connect( client, [ ROOT ] );
	const answer = await before;
	assert.deepEqual( { ...answer, executionId: 'x' }, { executionId: 'x', exitCode: 0, stdout: '<?php\n', stderr: '', truncated: false } );
	const refused = await tools.call( 'run_terminal_command', { command: 'npm' } );
	assert.equal( refused.exitCode, 127 );
	assert.equal( refused.error.code, 'wp_codebox_browser_command_unsupported' );
	for ( const input of [ null, {}, { command: 1 }, { command: 'ls', args: 'x' }, { command: 'ls', args: [ 1 ] }, { command: 'ls', cwd: '/' } ] ) {
		await assert.rejects( tools.call( 'run_terminal_command', input ), { code: 'wp_codebox_input_invalid' }, JSON.stringify( input ) );
	}
	await assert.rejects( tools.call( 'other', {} ), { code: 'wp_codebox_input_invalid' } );
	assert.throws( () => tools.register( RUN_TERMINAL_COMMAND, () => {} ), { code: 'wp_codebox_input_invalid' } );
	assert.deepEqual( tools.list(), [ RUN_TERMINAL_COMMAND ] );
} );

test( 'long output is cut in the answer to a model, and whole on the bus', async () => {
	const long = 'x'.repeat( 200_000 );
	const { bus, runtime, client, output } = session( { [ `${ ROOT }/long.txt` ]: long } );
	const tools = new ToolRegistry();
	tools.register( RUN_TERMINAL_COMMAND, terminalCommand( bus, runtime ) );
	runtime.connect( client, [ ROOT ] );
	const answer = await tools.call( 'run_terminal_command', { command: 'cat', args: [ 'long.txt' ] } );
	assert.equal( answer.truncated, true );
	assert.equal( answer.stdout.length, 65_536 );
	assert.equal( output(), long );
} );

test( 'a command line is split as a shell splits it', () => {
	for ( const [ line, expected ] of [
		[ '', [] ],
		[ '  ls  -la ', [ 'ls', '-la' ] ],
		[ "php -r 'echo 1;'", [ 'php', '-r', 'echo 1;' ] ],
		[ 'echo "a \\" $x" b\\ c \'\'', [ 'echo', 'a " $x', 'b c', '' ] ],
		[ "a'b'\"c\"", [ 'abc' ] ],
		[ "grep 'a|b' x", [ 'grep', 'a|b', 'x' ] ],
	] ) {
		assert.deepEqual( words( line ), expected, line );
	}
	for ( const line of [ 'ls | wc', 'a && b', 'echo x > y', 'echo $(ls)', 'echo `ls`', "echo 'x", 'a; b' ] ) {
		assert.throws( () => words( line ), { code: 'wp_codebox_browser_command_unsupported' }, line );
	}
} );

test( 'relative paths stay below their directory', () => {
	assert.equal( resolve( 'a//b/./c', ROOT ), `${ ROOT }/a/b/c` );
	assert.equal( resolve( 'a/../b', ROOT + '/' ), `${ ROOT }/b` );
	assert.equal( resolve( '/tmp/../x', ROOT ), '/x' );
	for ( const path of [ '', '..', 'a/../../b', '/..', 'a\0b' ] ) {
		assert.throws( () => resolve( path, ROOT ), { code: 'wp_codebox_input_invalid' }, JSON.stringify( path ) );
	}
} );

test( 'saving keeps the line ends of unchanged lines', () => {
	for ( const original of [ 'a\r\nb\r\nc\r\n', 'a\nb\r\nc\rd', 'a\r\nb', '\r\r\n\n', 'x\n' ] ) {
		assert.equal( restored( original, normalized( original ) ), original, JSON.stringify( original ) );
	}
	assert.equal( restored( 'a\r\nb\r\nc\r\n', 'a\nnew\nb\nc\n' ), 'a\r\nnew\r\nb\r\nc\r\n' );
	assert.equal( restored( 'a\nb\r\nc\r\nd', 'a\nb\nd' ), 'a\nb\r\nd' );
	assert.equal( restored( 'a\r\nb', 'a\nb\n' ), 'a\r\nb\r\n' );
	assert.equal( restored( 'a\nb\n', 'a\nc\n' ), 'a\nc\n' );
} );

test( 'restored line ends never change the text, and a comparison that takes too long gives each line the most frequent line end', () => {
	let state = 1;
	const below = ( bound ) => ( state = ( state * 48271 ) % 2147483647 ) % bound;
	const some = ( ends ) => Array.from( { length: below( 12 ) }, () => `${ below( 4 ) }${ ends[ below( ends.length ) ] }` ).join( '' ) + ( below( 2 ) ? 'end' : '' );
	for ( let round = 0; round < 2000; round++ ) {
		const [ original, edited ] = [ some( [ '\r\n', '\r', '\n' ] ), some( [ '\n' ] ) ];
		assert.equal( normalized( restored( original, edited ) ), edited, JSON.stringify( [ original, edited ] ) );
	}
	const lines = ( name, end ) => Array.from( { length: 20_000 }, ( _, i ) => `${ name }${ i % 7 } ${ ( i * i ) % 11 }${ end }` ).join( '' );
	const start = performance.now();
	assert.equal( restored( `first\n${ lines( 'a', '\r\n' ) }`, `first\n${ lines( 'b', '\n' ) }` ), `first\r\n${ lines( 'b', '\r\n' ) }` );
	assert.ok( performance.now() - start < 15_000 );
	assert.equal( restored( `first\n${ lines( 'a', '\r\n' ) }`, `first\nnew\n${ lines( 'a', '\n' ) }` ), `first\nnew\r\n${ lines( 'a', '\r\n' ) }` );
} );
