import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import test, { after, before } from 'node:test';
import { browser, serve } from './page/harness.mjs';

const ROOT = '/wordpress/wp-content/plugins/demo';
/** Directory for screenshots; empty for none. */
const SCREENS = process.env.SCREENS ?? '';
const DEFAULTS = { hydrate: () => [ 200, { success: true, blueprint: { landingPage: '/' } } ], keep: () => [ 200, { success: true, artifact_id: 'artifact-bundle-sha256-' + 'ab'.repeat( 32 ) } ] };
let server;
let chrome;

before( async () => {
	server = await serve();
	chrome = await browser();
	if ( SCREENS ) {
		mkdirSync( SCREENS, { recursive: true } );
	}
} );
after( async () => {
	await chrome?.close();
	server?.close();
} );

/** Opens the page in a browser context of its own and collects errors of its scripts. */
async function open( { settings = {}, site = {}, init = '', ready = true, viewport = { width: 1280, height: 900 }, context = null } = {} ) {
	Object.assign( server.site, DEFAULTS, { settings, requests: [] }, site );
	const own = context ?? ( await chrome.connected.newContext( { viewport, locale: 'en-US' } ) );
	const page = await own.newPage();
	page.setDefaultTimeout( 20_000 );
	const errors = [];
	page.on( 'pageerror', ( error ) => errors.push( String( error ) ) );
	if ( init ) {
		await page.addInitScript( init );
	}
	await page.goto( server.url );
	if ( ready ) {
		await page.waitForFunction( () => globalThis.fake && document.querySelector( '[role=treeitem][aria-expanded=true]' ) && /Ready/.test( document.querySelector( '.wp-codebox-log' ).textContent ) );
	}
	return { page, context: own, errors, shot: ( name ) => SCREENS && page.screenshot( { path: `${ SCREENS }/${ name }.png`, fullPage: true } ), async close() {
		assert.deepEqual( errors, [] );
		await own.close();
	} };
}

const log = ( page ) => page.locator( '.wp-codebox-log' ).textContent();
const saw = ( page, text ) => page.waitForFunction( ( part ) => document.querySelector( '.wp-codebox-log' ).textContent.includes( part ), text );
const file = ( page, name ) => page.evaluate( ( path ) => new TextDecoder().decode( globalThis.fake.files.get( path ) ), `${ ROOT }/${ name }` );
const row = ( page, name ) => page.locator( '[role=treeitem]', { hasText: name } );

/** Opens a file and puts text into the editor. */
async function edit( page, name, change ) {
	await row( page, name ).click();
	await page.waitForFunction( ( label ) => document.querySelector( '.wp-codebox-editor-title' ).textContent === label, name );
	const area = page.locator( '.wp-codebox-area' );
	await area.fill( change( await area.inputValue() ) );
}

test( 'a click in the tree opens a file and mounts it, an edit reloads the frame, and the changes show its patch', async () => {
	const { page, shot, close } = await open();
	await row( page, 'demo.php' ).click();
	await saw( page, '[System] Mounted: demo.php' );
	assert.equal( await row( page, 'demo.php' ).getAttribute( 'aria-selected' ), 'true' );
	assert.match( await page.locator( '.wp-codebox-area' ).inputValue(), /Plugin Name: Demo/ );
	assert.match( await page.locator( '.wp-codebox-gutter' ).textContent(), /^1\n2\n[\s\S]*\n9$/ );
	await page.locator( '.wp-codebox-area' ).fill( ( await page.locator( '.wp-codebox-area' ).inputValue() ).replace( 'Hello', 'Edited here' ) );
	assert.equal( await page.locator( '.wp-codebox-editor-state' ).textContent(), 'not saved' );
	await page.keyboard.press( 'Control+s' );
	await page.frameLocator( '.wp-codebox-frame' ).getByText( 'Edited here' ).waitFor();
	assert.match( await file( page, 'demo.php' ), /Edited here/ );
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).click();
	await page.locator( '.wp-codebox-change > summary' ).click();
	await shot( 'changes-1280' );
	const patch = await page.locator( '.wp-codebox-diff' ).textContent();
	assert.match( patch, /^diff --git a\/demo\.php b\/demo\.php\n--- a\/demo\.php\n\+\+\+ b\/demo\.php\n@@ -4,5 \+4,5 @@/ );
	assert.match( patch, /-\techo '<p>Hello<\/p>';\n\+\techo '<p>Edited here<\/p>';/ );
	await close();
} );

test( 'the automated check of the event names passes in the page', async () => {
	const { page, close } = await open();
	const output = await page.evaluate( async () => {
		const { events } = window.wpCodeboxBrowser;
		const seen = [];
		events.subscribe( 'RUNTIME_OUTPUT', ( { event } ) => seen.push( event.payload ) );
		const ended = new Promise( ( done ) => events.subscribe( 'RUNTIME_EXIT', ( { event } ) => done( event.payload ) ) );
		events.emit( { type: 'SYSTEM_FILE_SYNC', payload: { path: 'test.txt', content: 'hello' } } );
		events.emit( { type: 'AGENT_EXEC_CMD', payload: { command: 'cat', args: [ 'test.txt' ] } } );
		return { exit: await ended, seen };
	} );
	assert.equal( output.seen.map( ( { data } ) => data ).join( '' ), 'hello' );
	assert.equal( output.exit.exitCode, 0 );
	assert.equal( output.exit.executionId, output.seen[ 0 ].executionId );
	const text = await log( page );
	assert.ok( text.indexOf( '[System] Mounted: test.txt' ) < text.indexOf( '$ cat test.txt' ) );
	assert.match( text, /\$ cat test\.txt\nhello\n\[exec-\w+-1\] exit status 0\n/ );
	await row( page, 'test.txt' ).waitFor();
	await close();
} );

test( 'events that a plugin emits before the start are handled in order when the site runs', async () => {
	const init = `globalThis.plan = { stage: () => globalThis.go };
		globalThis.go = new Promise( ( done ) => { globalThis.release = done; } );
		document.addEventListener( 'wp-codebox-browser-ready', ( { detail } ) => {
			detail.events.emit( { type: 'SYSTEM_FILE_SYNC', payload: { path: 'early.txt', content: 'early bird' } } );
			detail.events.emit( { type: 'AGENT_EXEC_CMD', payload: { command: 'cat', args: [ 'early.txt' ] } } );
		} );`;
	const { page, shot, close } = await open( { init, ready: false } );
	await page.getByText( 'Downloading PHP and WordPress…' ).waitFor();
	await shot( 'booting-1280' );
	assert.equal( await log( page ), '[System] Waiting for the site: early.txt\n[System] Waiting for the site: cat early.txt\n' );
	await page.evaluate( () => globalThis.release() );
	await saw( page, 'early bird' );
	await close();
} );

test( 'typed commands run, and what the terminal cannot run is refused with the reason', async () => {
	const { page, shot, close } = await open();
	const input = page.getByRole( 'textbox', { name: 'Command' } );
	await input.fill( 'ls' );
	await input.press( 'Enter' );
	await saw( page, 'exit status 0' );
	assert.match( await log( page ), /\$ ls\n[\s\S]*demo\.php\n/ );
	await input.fill( 'npm install' );
	await input.press( 'Enter' );
	await saw( page, 'exit status 127' );
	assert.match( await log( page ), /the command npm is not supported Use php\./ );
	await input.fill( 'ls | wc' );
	await input.press( 'Enter' );
	await page.getByText( 'The terminal runs one command at a time; | is not supported.' ).waitFor();
	await input.fill( '' );
	await input.press( 'ArrowUp' );
	assert.equal( await input.inputValue(), 'npm install' );
	await page.waitForFunction( () => document.querySelector( '.xterm-rows' )?.textContent.includes( 'exit status 127' ) );
	await shot( 'terminal-1280' );
	await page.getByRole( 'button', { name: 'Show as plain text' } ).click();
	assert.equal( await page.getByRole( 'log' ).isVisible(), true );
	await close();
} );

test( 'a command that changes the open file shows the new version, and never replaces unsaved text', async () => {
	const { page, close } = await open();
	await row( page, 'demo.php' ).click();
	const area = page.locator( '.wp-codebox-area' );
	const run = ( text ) => page.evaluate( ( content ) => window.wpCodeboxBrowser.events.emit( { type: 'AGENT_EXEC_CMD', payload: { command: 'write', args: [ 'demo.php', content ] } } ), text );
	await page.waitForFunction( () => document.querySelector( '.wp-codebox-area' ).value.includes( 'Hello' ) );
	await run( 'agent one' );
	await page.waitForFunction( () => 'agent one' === document.querySelector( '.wp-codebox-area' ).value );
	await area.fill( 'my text' );
	await run( 'agent two' );
	await page.getByText( 'This file was changed in the sandbox since you opened it.' ).waitFor();
	assert.equal( await area.inputValue(), 'my text' );
	await page.getByRole( 'button', { name: 'Save', exact: true } ).click();
	assert.equal( await file( page, 'demo.php' ), 'agent two' );
	await page.getByRole( 'button', { name: 'Save my version' } ).click();
	await saw( page, 'Saved: demo.php' );
	assert.equal( await file( page, 'demo.php' ), 'my text' );
	await close();
} );

test( 'unsaved text of a file comes back with it, and a change meanwhile is a question', async () => {
	const { page, close } = await open();
	await edit( page, 'demo.php', () => 'my text' );
	await row( page, 'readme.txt' ).click();
	await page.waitForFunction( () => document.querySelector( '.wp-codebox-area' ).value.startsWith( '=== Demo' ) );
	await page.evaluate( () => window.wpCodeboxBrowser.tools.call( 'run_terminal_command', { command: 'write', args: [ 'demo.php', 'agent' ] } ) );
	await row( page, 'demo.php' ).click();
	await page.waitForFunction( () => 'my text' === document.querySelector( '.wp-codebox-area' ).value );
	await page.getByText( 'This file was changed in the sandbox since you opened it.' ).waitFor();
	await page.getByRole( 'button', { name: 'Show the version of the sandbox' } ).click();
	assert.equal( await page.locator( '.wp-codebox-area' ).inputValue(), 'agent' );
	await close();
} );

test( 'line ends of a file stay, and a binary file is shown and not edited', async () => {
	const { page, close } = await open();
	await edit( page, 'readme.txt', ( text ) => text.replace( 'A plugin.', 'A better plugin.' ) );
	await page.keyboard.press( 'Control+s' );
	await saw( page, 'Saved: readme.txt' );
	assert.equal( await file( page, 'readme.txt' ), '=== Demo ===\r\nA better plugin.\r\nWindows line ends.\r\n' );
	await row( page, 'logo.bin' ).click();
	await page.getByText( 'This file is not UTF-8 text.' ).waitFor();
	assert.equal( await page.locator( '.wp-codebox-area' ).getAttribute( 'readonly' ), '' );
	await close();
} );

test( 'keep uploads changed and deleted files, shows the bundle, and links to its review', async () => {
	const { page, shot, close } = await open();
	await edit( page, 'demo.php', ( text ) => text + '// kept\n' );
	await page.evaluate( ( path ) => globalThis.fake.unlink( path ), `${ ROOT }/logo.bin` );
	await page.getByRole( 'button', { name: 'Save', exact: true } ).click();
	await page.getByRole( 'tab', { name: 'Changes (2)' } ).waitFor();
	await page.getByRole( 'button', { name: 'Keep as a bundle' } ).click();
	await page.getByText( 'The bundle is stored.' ).waitFor();
	await shot( 'kept-1280' );
	const { body, nonce, method } = server.site.requests.find( ( { name } ) => 'keep' === name );
	assert.equal( method, 'POST' );
	assert.equal( nonce, 'nonce-k' );
	assert.equal( body.input.session_id, 'session-one' );
	assert.deepEqual( body.input.deleted, [ 'plugins/demo/logo.bin' ] );
	assert.deepEqual( body.input.files.map( ( { path } ) => path ), [ 'plugins/demo/demo.php' ] );
	assert.match( Buffer.from( body.input.files[ 0 ].content_base64, 'base64' ).toString(), /\/\/ kept\n$/ );
	assert.match( body.input.provenance.changes_digest, /^[0-9a-f]{64}$/ );
	assert.match( await page.getByRole( 'link', { name: 'Review the bundle' } ).getAttribute( 'href' ), /^\/review\?bundle=artifact-bundle-sha256-abab/ );
	assert.equal( await page.evaluate( () => dispatchEvent( new Event( 'beforeunload', { cancelable: true } ) ) ), true );
	await close();
} );

test( 'a refused or broken upload keeps the edits, says why, and can be tried again', async () => {
	const { page, shot, close } = await open();
	await edit( page, 'demo.php', ( text ) => text + '// mine\n' );
	await page.getByRole( 'button', { name: 'Save', exact: true } ).click();
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).waitFor();
	const keep = page.getByRole( 'button', { name: 'Keep as a bundle' } );
	for ( const [ answer, code ] of [
		[ [ 403, { code: 'rest_cookie_invalid_nonce', message: 'Cookie check failed' } ], 'rest_cookie_invalid_nonce' ],
		[ [ 413, { code: 'wp_codebox_browser_upload_too_large', message: 'The upload is too large.', data: { status: 413, hints: [ 'Delete files.' ] } } ], 'wp_codebox_browser_upload_too_large' ],
		[ [ 502, '<html>Bad gateway' ], 'wp_codebox_browser_site_unreadable' ],
		[ null, 'wp_codebox_browser_site_unreachable' ],
		[ [ 200, { success: false, error: { code: 'wp_codebox_browser_session_expired', message: 'The session expired.' } } ], 'wp_codebox_browser_session_expired' ],
	] ) {
		server.site.keep = () => answer;
		await keep.click();
		await page.locator( '.wp-codebox-keep .wp-codebox-code', { hasText: code } ).waitFor();
		await page.getByText( 'No bundle was stored. Your edits are still here.' ).waitFor();
	}
	await shot( 'refused-1280' );
	assert.match( await file( page, 'demo.php' ), /\/\/ mine\n$/ );
	assert.equal( await page.evaluate( () => dispatchEvent( new Event( 'beforeunload', { cancelable: true } ) ) ), false );
	server.site.keep = DEFAULTS.keep;
	await page.locator( '.wp-codebox-keep' ).getByRole( 'button', { name: 'Try again' } ).click();
	await page.getByText( 'The bundle is stored.' ).waitFor();
	await close();
} );

test( 'a user who may not keep bundles cannot press the button', async () => {
	const { page, close } = await open( { settings: { can_keep: false } } );
	await edit( page, 'demo.php', ( text ) => text + '\n' );
	await page.getByRole( 'button', { name: 'Save', exact: true } ).click();
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).waitFor();
	assert.equal( await page.getByRole( 'button', { name: 'Keep as a bundle' } ).isDisabled(), true );
	await close();
} );

test( 'a reload brings saved and unsaved edits of the session back', async () => {
	const { page, close } = await open();
	await edit( page, 'demo.php', ( text ) => text + '// saved\n' );
	await page.getByRole( 'button', { name: 'Save', exact: true } ).click();
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).waitFor();
	await edit( page, 'readme.txt', () => 'not saved yet' );
	await stored( page, ( edits ) => 1 === edits.files.length && 'not saved yet' === edits.unsaved[ 'plugins/demo/readme.txt' ] );
	page.on( 'dialog', ( dialog ) => dialog.accept() );
	await page.reload();
	await saw( page, 'Restored the edits of 2 files.' );
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).waitFor();
	assert.match( await file( page, 'demo.php' ), /\/\/ saved\n$/ );
	await page.locator( '.wp-codebox-messages' ).getByRole( 'button', { name: 'plugins/demo/readme.txt' } ).click();
	await page.waitForFunction( () => 'not saved yet' === document.querySelector( '.wp-codebox-area' ).value );
	assert.match( await file( page, 'readme.txt' ), /^=== Demo/ );
	await close();
} );

/** Waits until the record of the session in IndexedDB is as wanted. */
async function stored( page, wanted ) {
	const read = () =>
		page.evaluate(
			() =>
				new Promise( ( done ) => {
					const request = indexedDB.open( 'wp-codebox-browser-edits' );
					request.onsuccess = () => {
						const all = request.result.transaction( 'sessions' ).objectStore( 'sessions' ).getAll();
						all.onsuccess = () => {
							request.result.close();
							done( all.result.map( ( { files, ...rest } ) => ( { ...rest, files: files.map( ( { target } ) => target ) } ) ) );
						};
					};
				} )
		);
	for ( let tries = 0; tries < 200; tries++ ) {
		const [ edits ] = await read();
		if ( edits && wanted( edits ) ) {
			return;
		}
		await new Promise( ( done ) => setTimeout( done, 50 ) );
	}
	assert.fail( JSON.stringify( await read() ) );
}

test( 'edits of another session with the same code are offered, and edits for other code are not written unasked', async () => {
	const first = await open();
	await edit( first.page, 'demo.php', ( text ) => text + '// older session\n' );
	await first.page.getByRole( 'button', { name: 'Save', exact: true } ).click();
	await stored( first.page, ( edits ) => 1 === edits.files.length );
	await first.page.close( { runBeforeUnload: false } );
	const init = `globalThis.plan = { archive: { '${ ROOT }/demo.php': '<?php // updated meanwhile' } };`;
	const { page, shot, close } = await open( { context: first.context, settings: { session: { session_id: 'session-two' } }, init } );
	await page.getByText( 'This browser has edits of 1 file from a session of' ).waitFor();
	await shot( 'offer-1280' );
	assert.equal( await file( page, 'demo.php' ), '<?php // updated meanwhile' );
	await page.getByRole( 'button', { name: 'Restore them' } ).click();
	await page.getByText( 'The code of the site changed since you edited these files.' ).waitFor();
	assert.equal( await file( page, 'demo.php' ), '<?php // updated meanwhile' );
	await stored( page, ( edits ) => 'session-two' === edits.session && 'plugins/demo/demo.php' === edits.files[ 0 ] );
	await page.getByRole( 'button', { name: 'Write my versions' } ).click();
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).waitFor();
	assert.match( await file( page, 'demo.php' ), /\/\/ older session\n$/ );
	await close();
} );

test( 'a session that is open in another tab is not started again until that tab is closed', async () => {
	const first = await open();
	const { page, close } = await open( { context: first.context, ready: false } );
	await page.locator( '.wp-codebox-cover', { hasText: 'This browser session is open in another tab.' } ).waitFor();
	assert.equal( await page.evaluate( () => globalThis.starts ?? 0 ), 0 );
	await first.page.close();
	await page.getByRole( 'button', { name: 'Try again' } ).click();
	await page.frameLocator( '.wp-codebox-frame' ).getByText( 'My sandbox' ).waitFor();
	await close();
} );

test( 'without storage the page says so and works', async () => {
	const init = `Object.defineProperty( globalThis, 'indexedDB', { value: { open() { throw new DOMException( 'denied', 'SecurityError' ); } } } );`;
	const { page, close } = await open( { init } );
	await page.getByText( 'The browser does not let this page store your edits.' ).waitFor();
	await edit( page, 'demo.php', ( text ) => text + '// works\n' );
	await page.getByRole( 'button', { name: 'Save', exact: true } ).click();
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).waitFor();
	await page.getByRole( 'button', { name: 'Keep as a bundle' } ).click();
	await page.getByText( 'The bundle is stored.' ).waitFor();
	await close();
} );

test( 'a full storage is a sentence and the edits stay in the page', async () => {
	const init = `IDBObjectStore.prototype.put = function () { throw new DOMException( 'full', 'QuotaExceededError' ); };`;
	const { page, close } = await open( { init } );
	await edit( page, 'demo.php', ( text ) => text + '// works\n' );
	await page.getByText( 'The browser has no space for your edits.' ).waitFor();
	await page.getByRole( 'button', { name: 'Save', exact: true } ).click();
	await saw( page, 'Saved: demo.php' );
	assert.match( await file( page, 'demo.php' ), /\/\/ works\n$/ );
	await close();
} );

test( 'every failure of the start is a sentence with code and advice, and another try starts the site', async () => {
	for ( const [ code, advice ] of [
		[ 'wp_codebox_browser_no_service_worker', 'Open this page over https' ],
		[ 'wp_codebox_browser_no_decompression', 'Update the browser' ],
		[ 'wp_codebox_browser_asset_hash_mismatch', 'Ask an administrator' ],
		[ 'wp_codebox_browser_boot_timeout', 'Reload the page' ],
	] ) {
		const init = `globalThis.plan = { fail: { code: '${ code }', message: 'It does not start.' } };`;
		const { page, shot, close } = await open( { init, ready: false } );
		await page.getByText( 'It does not start.' ).first().waitFor();
		await page.getByText( advice ).waitFor();
		await page.locator( '.wp-codebox-cover .wp-codebox-code', { hasText: code } ).waitFor();
		if ( 'wp_codebox_browser_no_service_worker' === code ) {
			await shot( 'failed-1280' );
			await page.evaluate( () => delete globalThis.plan );
			await page.getByRole( 'button', { name: 'Try again' } ).click();
			await page.frameLocator( '.wp-codebox-frame' ).getByText( 'My sandbox' ).waitFor();
			assert.equal( await page.evaluate( () => globalThis.starts ), 2 );
		}
		await close();
	}
} );

test( 'a refused blueprint, a missing module and a page without a session are sentences', async () => {
	const refused = await open( { site: { hydrate: () => [ 410, { code: 'wp_codebox_browser_session_expired', message: 'The session expired.' } ] }, ready: false } );
	await refused.page.getByText( 'Open a new browser session from the page of the plugin, theme or bundle.' ).waitFor();
	await refused.close();
	const missing = await open( { settings: { client_module_url: '/none.js' }, ready: false } );
	await missing.page.locator( '.wp-codebox-cover', { hasText: 'A file that browser sessions need is missing on this site.' } ).waitFor();
	await missing.close();
	const empty = await open( { settings: { roots: [] }, ready: false } );
	await empty.page.getByText( 'This page has no browser session.' ).waitFor();
	await empty.close();
} );

test( 'an ability that only reads is run with GET', async () => {
	const { close } = await open( { site: { hydrate: ( method ) => ( 'GET' === method ? DEFAULTS.hydrate() : [ 405, { code: 'rest_ability_invalid_method', message: 'GET' } ] ) } } );
	const [ first, second ] = server.site.requests;
	assert.deepEqual( [ first.method, second.method ], [ 'POST', 'GET' ] );
	assert.match( decodeURIComponent( second.query ), /^\?input\[ref\]=prepared:one:0+$/ );
	await close();
} );

test( 'the tree and the tabs are worked with the keyboard alone', async () => {
	const { page, close } = await open();
	await row( page, 'Demo' ).first().focus();
	const focused = () => page.evaluate( () => document.activeElement.textContent );
	await page.keyboard.press( 'ArrowDown' );
	assert.equal( await focused(), 'assets' );
	await page.keyboard.press( 'ArrowDown' );
	await page.keyboard.press( 'ArrowRight' );
	await row( page, 'class-widget.php' ).waitFor();
	await page.keyboard.press( 'ArrowRight' );
	assert.equal( await focused(), 'class-widget.php' );
	await page.keyboard.press( 'Enter' );
	await saw( page, '[System] Mounted: includes/class-widget.php' );
	await page.keyboard.press( 'ArrowLeft' );
	assert.equal( await focused(), 'includes' );
	await page.keyboard.press( 'ArrowLeft' );
	assert.equal( await row( page, 'class-widget.php' ).isVisible(), false );
	await page.keyboard.press( 'End' );
	assert.equal( await focused(), 'readme.txt' );
	await page.keyboard.press( 'd' );
	assert.equal( await focused(), 'Demo' );
	await page.getByRole( 'tab', { name: 'Files' } ).focus();
	await page.keyboard.press( 'ArrowRight' );
	assert.equal( await page.getByRole( 'tab', { name: 'Changes' } ).getAttribute( 'aria-selected' ), 'true' );
	await close();
} );

test( 'output of the sandbox brings no HTML and no escape sequences into the plain terminal', async () => {
	const { page, close } = await open();
	await page.evaluate( () => window.wpCodeboxBrowser.events.emit( { type: 'RUNTIME_OUTPUT', payload: { executionId: 'x', stream: 'stdout', data: '<img src=x onerror="document.title=1">\x1b[31mred\x1b[0m\x1b]0;title\x07!\n' } } ) );
	await saw( page, '<img src=x onerror="document.title=1">red!' );
	assert.equal( await page.title(), 'Browser sandbox' );
	await close();
} );

test( 'no control needs more width than 390 pixels', async () => {
	const { page, shot, close } = await open( { viewport: { width: 390, height: 844 } } );
	await edit( page, 'demo.php', ( text ) => text.replace( 'Hello', 'On a phone' ) );
	await page.getByRole( 'button', { name: 'Save', exact: true } ).click();
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).waitFor();
	await shot( 'files-390' );
	await page.getByRole( 'tab', { name: 'Changes (1)' } ).click();
	await page.locator( '.wp-codebox-change > summary' ).click();
	await page.locator( '.wp-codebox-note summary' ).click();
	await shot( 'changes-390' );
	assert.ok( ( await page.evaluate( () => document.documentElement.scrollWidth ) ) <= 390 );
	await close();
} );

test( 'the page asks no other host and has every id only once', async () => {
	const { page, shot, close } = await open();
	const hosts = [];
	page.on( 'request', ( request ) => hosts.push( new URL( request.url() ) ) );
	await page.reload();
	await page.frameLocator( '.wp-codebox-frame' ).getByText( 'My sandbox' ).waitFor();
	await row( page, 'demo.php' ).click();
	await saw( page, '[System] Mounted: demo.php' );
	await shot( 'files-1280' );
	assert.ok( hosts.length > 3 );
	assert.deepEqual( hosts.filter( ( url ) => url.protocol.startsWith( 'http' ) && ! server.url.startsWith( url.origin ) ).map( String ), [] );
	assert.deepEqual( await page.evaluate( () => [ ...document.querySelectorAll( '[id]' ) ].map( ( { id } ) => id ).filter( ( id, at, all ) => all.indexOf( id ) !== at ) ), [] );
	await close();
} );

test( 'the built files are of the expected size', () => {
	const size = ( name ) => readFileSync( `${ server.directory }/${ name }` ).length;
	assert.ok( size( 'workbench.js' ) < 600_000, `workbench.js has ${ size( 'workbench.js' ) } bytes` );
	assert.ok( size( 'workbench.css' ) < 20_000, `workbench.css has ${ size( 'workbench.css' ) } bytes` );
	console.log( `workbench.js ${ size( 'workbench.js' ) } bytes, workbench.css ${ size( 'workbench.css' ) } bytes` );
} );
