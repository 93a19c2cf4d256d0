/**
 * The example plugin tests/fixtures/host-browser-agent with the scripted model: an agent loop in the page whose key stays
 * on the server.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { browser, serve } from './page/harness.mjs';

const repository = fileURLToPath( new URL( '../../../', import.meta.url ) );
const KEY = 'secret-key-of-the-model-server';
const call = ( command, ...args ) => ( { tool: 'run_terminal_command', args: { command, args } } );
const SCRIPT = [
	{ calls: [ call( 'cat', 'demo.php' ) ], expect: { tools: [ 'run_terminal_command' ], first: 'Add a file' } },
	{ calls: [ { tool: 'run_terminal_command', args: { command: 'ls', cwd: '/' } } ], expect: { last: 'Plugin Name: Demo' } },
	{ calls: [ call( 'npm', 'install' ) ], expect: { last: 'has no member' } },
	{ calls: [ call( 'write', 'agent.txt', 'hello from the agent' ) ], expect: { last: 'wp_codebox_browser_command_unsupported' } },
	{ text: 'agent.txt is written.', expect: { last: 'exitCode.{1,4}0' } },
];
let server;
let chrome;
let model;
let directory;
let port;

before( async () => {
	directory = mkdtempSync( join( tmpdir(), 'workbench-agent-' ) );
	writeFileSync( join( directory, 'script.json' ), JSON.stringify( SCRIPT ) );
	model = spawn( 'python3', [ join( repository, 'tests/model-server/server.py' ), '--script', join( directory, 'script.json' ), '--port', '0', '--port-file', join( directory, 'port' ), '--log', join( directory, 'log' ), '--key', KEY ], { stdio: 'inherit' } );
	while ( ! existsSync( join( directory, 'port' ) ) || '' === readFileSync( join( directory, 'port' ), 'utf8' ) ) {
		await new Promise( ( done ) => setTimeout( done, 20 ) );
	}
	port = readFileSync( join( directory, 'port' ), 'utf8' ).trim();
	server = await serve();
	chrome = await browser();
} );
after( async () => {
	await chrome?.close();
	server?.close();
	model?.kill();
	rmSync( directory, { recursive: true, force: true } );
} );

/** What the ability and the connector of a site do: the key is added here, and never sent to the page. */
async function connector( _method, { input } ) {
	const answer = await fetch( `http://127.0.0.1:${ port }/agent/one/v1/chat/completions`, {
		method: 'POST',
		headers: { Authorization: `Bearer ${ KEY }`, 'Content-Type': 'application/json' },
		body: JSON.stringify( { stream: false, model: 'example-model', ...input.payload } ),
	} );
	const body = await answer.json();
	return [ 200, answer.ok ? { success: true, response: body } : { success: false, error: { code: 'host_connector_refused', message: JSON.stringify( body ) } } ];
}

test( 'an agent loop in the page works through the tools, and the key of the model never reaches it', async () => {
	server.site.connector = connector;
	server.site.scripts = { '/agent.js': readFileSync( join( repository, 'tests/fixtures/host-browser-agent/agent.js' ) ) };
	server.site.extra = '<script>window.hostBrowserAgent={"abilities":"/abilities/","nonce":"n","connector":"primary-ai"}</script><script src="/agent.js"></script>';
	const page = await ( await chrome.connected.newContext() ).newPage();
	page.setDefaultTimeout( 30_000 );
	const received = [];
	page.on( 'response', async ( response ) => received.push( await response.text().catch( () => '' ) ) );
	await page.goto( server.url );
	await page.getByLabel( 'Goal for the agent' ).fill( 'Add a file.' );
	await page.getByRole( 'button', { name: 'Run the agent' } ).click();
	await page.getByText( 'agent.txt is written.' ).waitFor();
	assert.equal( await page.evaluate( () => new TextDecoder().decode( globalThis.fake.files.get( '/wordpress/wp-content/plugins/demo/agent.txt' ) ) ), 'hello from the agent' );
	const text = await page.locator( '.wp-codebox-log' ).textContent();
	for ( const line of [ '$ cat demo.php', '$ npm install', "$ write agent.txt 'hello from the agent'" ] ) {
		assert.ok( text.includes( line ), line );
	}
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).waitFor();
	const log = readFileSync( join( directory, 'log' ), 'utf8' ).trim().split( '\n' ).map( ( line ) => JSON.parse( line ) );
	assert.deepEqual( log.map( ( { status } ) => status ), [ 200, 200, 200, 200, 200 ] );
	assert.ok( received.length > 5 );
	assert.ok( ! received.join( '' ).includes( KEY ) );
	assert.ok( ! ( await page.content() ).includes( KEY ) );
} );
