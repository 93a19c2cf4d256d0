/**
 * The page with the real engine: WordPress in Chromium. Needs `npm run build`, and the WordPress of CODEBOX_WORDPRESS.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { enginePage } from './engine-page.mjs';
import { browser } from './page/harness.mjs';

const SCREENS = process.env.SCREENS ?? '';
const skip = existsSync( fileURLToPath( new URL( '../../dist/workbench.js', import.meta.url ) ) ) && existsSync( process.env.CODEBOX_WORDPRESS ?? '/var/lib/wp-codebox-dev/wordpress' ) ? false : 'needs npm run build and a WordPress';
let chrome;
let parent;
let parts;

before( async () => {
	if ( ! skip ) {
		parts = await import( '../server.mjs' );
		chrome = await browser();
		parent = await parts.serve();
	}
} );
after( async () => {
	await chrome?.close();
	await parent?.close();
} );

/** Opens the page of a session of the sample plugin. */
async function open() {
	const address = enginePage( parent, parts );
	const { origin } = new URL( address );
	const context = await chrome.connected.newContext( { viewport: { width: 1280, height: 1060 }, locale: 'en-US' } );
	const page = await context.newPage();
	page.setDefaultTimeout( 90_000 );
	const errors = [];
	const foreign = [];
	page.on( 'pageerror', ( error ) => errors.push( String( error ) ) );
	page.on( 'request', ( request ) => ! /^(data|blob|about):/.test( request.url() ) && ! request.url().startsWith( origin + '/' ) && foreign.push( request.url() ) );
	await page.goto( address );
	return { page, context, errors, foreign };
}

const saw = ( page, text ) => page.waitForFunction( ( part ) => document.querySelector( '.wp-codebox-log' ).textContent.includes( part ), text );

test( 'a real WordPress runs in the page: edit, terminal, changes, reload', { skip, timeout: 240_000 }, async () => {
	const { page, context, errors, foreign } = await open();
	await saw( page, '[System] Ready' );
	const shot = ( name ) => SCREENS && ( mkdirSync( SCREENS, { recursive: true } ), page.screenshot( { path: `${ SCREENS }/${ name }.png` } ) );
	await shot( 'engine-ready' );

	// The automated check of the event names.
	await page.evaluate( () => {
		const { events } = window.wpCodeboxBrowser;
		events.emit( { type: 'SYSTEM_FILE_SYNC', payload: { path: 'test.txt', content: 'hello' } } );
		events.emit( { type: 'AGENT_EXEC_CMD', payload: { command: 'cat', args: [ 'test.txt' ] } } );
	} );
	await saw( page, '$ cat test.txt\nhello\n' );
	const answer = await page.evaluate( () => window.wpCodeboxBrowser.tools.call( 'run_terminal_command', { command: 'php', args: [ '-r', 'echo PHP_VERSION;' ] } ) );
	assert.equal( answer.exitCode, 0 );
	assert.match( answer.stdout, /^8\.3\./ );
	const refused = await page.evaluate( () => window.wpCodeboxBrowser.tools.call( 'run_terminal_command', { command: 'npm', args: [] } ) );
	assert.equal( refused.exitCode, 127 );

	await page.locator( '[role=treeitem]', { hasText: 'sample.php' } ).click();
	await saw( page, '[System] Mounted: sample.php' );
	const area = page.locator( '.wp-codebox-area' );
	await area.fill( ( await area.inputValue() ) + "\nadd_action( 'wp_footer', function () { echo '<p>Edited in the page</p>'; } );\n" );
	await page.keyboard.press( 'Control+s' );
	const inside = () => page.frames().map( ( frame ) => frame.getByText( 'Edited in the page' ).count().catch( () => 0 ) );
	await waitUntil( async () => ( await Promise.all( inside() ) ).some( ( count ) => count > 0 ) );
	await page.getByRole( 'tab', { name: 'Changes (2)' } ).click();
	await page.locator( '.wp-codebox-change > summary' ).first().click();
	await shot( 'engine-changes' );
	await page.getByRole( 'button', { name: 'Dashboard' } ).click();
	await waitUntil( async () => ( await Promise.all( page.frames().map( ( frame ) => frame.getByRole( 'heading', { name: 'Dashboard' } ).count().catch( () => 0 ) ) ) ).some( ( count ) => count > 0 ) );
	await shot( 'engine-dashboard' );

	page.on( 'dialog', ( dialog ) => dialog.accept() );
	await page.reload();
	await saw( page, 'Restored the edits of 2 files.' );
	await waitUntil( async () => ( await Promise.all( inside() ) ).some( ( count ) => count > 0 ) );
	// Scripts of WordPress that use storage fail in documents without an origin; a note on the page says so.
	assert.deepEqual( errors.filter( ( error ) => ! /sandboxed|__unstableCreatePersistenceLayer/.test( error ) ), [] );
	assert.deepEqual( foreign, [] );
	await context.close();
} );

async function waitUntil( condition ) {
	for ( let tries = 0; ! ( await condition() ); tries++ ) {
		assert.ok( tries < 900 );
		await new Promise( ( done ) => setTimeout( done, 100 ) );
	}
}
