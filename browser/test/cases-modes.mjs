/** Full mode on a separate host, its refusals, the other build of PHP, and cross-origin isolation. */
import { gzipSync } from 'node:zlib';
import { holds, same, soon, test } from './harness.mjs';
import { assets, serve, shot, source, wordpressVersion } from './server.mjs';
import { call, go, siteFrame, start } from './world.mjs';

export default async function cases( { page: open, origin, site, foreign } ) {
	const other = `http://localhost:${ site.port }`;
	const allow = ( document ) => site.own.set( `${ assets }separate-host.json`, Buffer.from( JSON.stringify( document ) ) );
	const full = ( page, more = {} ) => start( page, origin, { scope: 'full', remoteUrl: `${ other }${ assets }remote.html`, codebox: { isolation: 'separate-host' }, ...more } );

	await test( 'modes: full mode on another host has REST, scripts of core and the plugin', async () => {
		allow( { origin: other, embedders: [ origin ] } );
		const page = await open();
		const answer = await full( page, { blueprint: { login: true, landingPage: '/wp-admin/' , steps: [ { step: 'activatePlugin', pluginPath: 'sample/sample.php' } ] } } );
		same( true, answer.ok, JSON.stringify( answer ) );
		let frame = siteFrame( page, 'full' );
		same( [ other, 'Dashboard' ], [ await frame.evaluate( () => self.origin ), await frame.locator( '#wpbody-content h1' ).first().innerText() ] );
		same( false, await frame.evaluate( async () => ( await ( await fetch( '../?rest_route=/sample/v1/who' ) ).json() ).user ), 'REST answers; without a nonce nobody is logged in' );
		const ajax = await frame.evaluate( async () => ( await fetch( 'admin-ajax.php?action=rest-nonce' ) ).text() );
		holds( `AJAX answers as the user: ${ ajax }`, /^[0-9a-f]{10}$/.test( ajax ) );
		same( 'admin', await frame.evaluate( async ( nonce ) => ( await ( await fetch( '../?rest_route=/sample/v1/who', { headers: { 'X-WP-Nonce': nonce } } ) ).json() ).user, ajax ) );
		await shot( page, 'full-dashboard' );
		frame = await go( page, '/', 'full' );
		same( [ 'first', 'rgb(1, 2, 3)' ], await frame.evaluate( () => [ document.documentElement.dataset.sample, getComputedStyle( document.getElementById( 'sample-banner' ) ).color ] ) );
		const reach = await frame.evaluate( () => {
			const attempt = ( task ) => {
				try {
					return String( task() );
				} catch ( thrown ) {
					return `blocked: ${ thrown.name }`;
				}
			};
			return [ attempt( () => window.top.document.body.dataset.secret ), document.cookie.includes( 'parent_secret' ), attempt( () => localStorage.getItem( 'parent_secret' ) ) ];
		} );
		same( [ 'blocked: SecurityError', false, 'null' ], reach, 'the parent is out of reach' );
		await page.close();
	} );

	await test( 'modes: the block editor opens in full mode', async () => {
		allow( { origin: other, embedders: [ origin ] } );
		const page = await open();
		same( true, ( await full( page, { blueprint: { login: true, steps: [] } } ) ).ok );
		const frame = await go( page, '/wp-admin/post-new.php', 'full' );
		await soon( 'the editor has its canvas', async () => ( await frame.locator( '.editor-visual-editor, .edit-post-visual-editor' ).count() ) > 0, 90000 );
		await shot( page, 'full-editor' );
		await page.close();
	} );

	await test( 'modes: the Customizer has its preview in full mode', async () => {
		allow( { origin: other, embedders: [ origin ] } );
		const page = await open();
		same( true, ( await full( page, { blueprint: { login: true, steps: [ { step: 'activatePlugin', pluginPath: 'sample/sample.php' } ] } } ) ).ok );
		const frame = await go( page, '/wp-admin/customize.php', 'full' );
		await soon( 'the preview shows the plugin', async () => ( await Promise.all( frame.childFrames().map( ( one ) => one.locator( '#sample-banner' ).innerText( { timeout: 1000 } ).catch( () => '' ) ) ) ).includes( 'Banner of the sample' ) );
		await page.close();
	} );

	const refused = async ( what, code, options, prepare = () => {} ) => test( `modes: ${ what }`, async () => {
		prepare();
		const page = await open();
		const answer = await full( page, options );
		same( [ false, code ], [ answer.ok, answer.code ], JSON.stringify( answer ) );
		await page.close();
	} );
	const code = 'wp_codebox_browser_remote_refused';
	await refused( 'full mode on the same origin is refused', code, { remoteUrl: `${ assets }remote.html` } );
	await refused( 'full mode on another port of the same host is refused', code, { remoteUrl: `http://127.0.0.1:${ site.port + 1 }${ assets }remote.html` } );
	await refused( 'the default mode with a remote page on another host is refused', code, { codebox: { isolation: 'opaque' } } );
	await refused( 'a host that is not configured as sandbox host refuses full mode', code, {}, () => site.own.delete( `${ assets }separate-host.json` ) );
	await refused( 'a sandbox host refuses pages that it does not list', code, {}, () => allow( { origin: other, embedders: [ 'https://elsewhere.example' ] } ) );
	await refused( 'the file of the sandbox host does not make another host one', code, {}, () => allow( { origin: 'http://sandbox.example', embedders: [ origin ] } ) );

	await test( 'modes: the remote page itself refuses foreign pages in both modes, whatever the client says', async () => {
		allow( { origin: 'http://sandbox.example', embedders: [ origin, other ] } );
		const page = await open( other );
		const open1 = ( isolation, target ) => page.evaluate( async ( [ mode, url ] ) => {
			const frame = document.createElement( 'iframe' );
			const loaded = new Promise( ( resolve ) => frame.addEventListener( 'load', resolve, { once: true } ) );
			frame.src = `${ url }?scope=evil&isolation=${ mode }#channel`;
			document.body.append( frame );
			await loaded;
			const control = new MessageChannel();
			const worker = new MessageChannel();
			const answer = new Promise( ( resolve ) => {
				control.port1.onmessage = ( event ) => resolve( event.data.failure?.code ?? event.data.kind );
			} );
			frame.contentWindow.postMessage( { type: 'wp-codebox-browser-hello', channel: 'channel' }, '*', [ control.port2, worker.port2 ] );
			control.port1.postMessage( { kind: 'call', id: 1, method: 'open', args: [ { coep: false } ] } );
			return answer;
		}, [ isolation, target ] );
		same( [ code, code ], [ await open1( 'opaque', `${ origin }${ assets }remote.html` ), await open1( 'separate-host', `${ origin }${ assets }remote.html` ) ] );
		same( 'answer', await open1( 'opaque', `${ other }${ assets }remote.html` ), 'control: its own page may open it' );
		await page.close();
	} );

	await test( 'modes: asyncify boots too', async () => {
		const page = await open();
		const answer = await start( page, origin, { scope: 'asyncify', codebox: { php_build: 'asyncify' } } );
		same( [ true, 'asyncify', wordpressVersion ], [ answer.ok, answer.diagnostics?.build, answer.diagnostics?.wordpress ], JSON.stringify( answer ) );
		same( 'Banner of the sample', await siteFrame( page, 'asyncify' ).locator( '#sample-banner' ).innerText() );
		console.log( `     boot with asyncify and a cache: ${ JSON.stringify( answer.diagnostics.milliseconds ) }` );
		await page.close();
	} );
	await test( 'modes: a web server that takes the ending .gz for an encoding changes no file of the engine', async () => {
		const text = 'unpacked on the way';
		site.own.set( '/files/control.gz', gzipSync( text ) );
		const page = await open();
		same( text, await page.evaluate( async () => ( await fetch( '/files/control.gz' ) ).text() ), 'control' );
		const runtime = source( origin ).runtime;
		const kept = await page.evaluate( ( url ) => Promise.all( url.map( async ( one ) => [ ...new Uint8Array( await crypto.subtle.digest( 'SHA-256', await ( await fetch( one, { cache: 'no-store' } ) ).arrayBuffer() ) ) ].map( ( byte ) => byte.toString( 16 ).padStart( 2, '0' ) ).join( '' ) ) ), runtime.files.map( ( file ) => runtime.base_url + file.name ) );
		same( runtime.files.map( ( file ) => file.sha256 ), kept );
		await page.evaluate( () => caches.delete( 'wp-codebox-browser-v1' ) );
		const answer = await start( page, origin, { scope: 'encoded' } );
		same( [ true, 'installer' ], [ answer.ok, answer.diagnostics?.database ], JSON.stringify( answer ) );
		await page.close();
	} );
	await test( 'modes: a browser without JSPI gets asyncify by itself', async () => {
		const page = await open( origin, () => delete WebAssembly.Suspending );
		const answer = await start( page, origin, { scope: 'nojspi', blueprint: { steps: [ { step: 'resetData' } ] } } );
		same( 'wp_codebox_browser_step_unsupported', answer.code );
		holds( 'the other build was not asked for again, this one was', site.log.some( ( one ) => one.path.endsWith( 'php-asyncify.bin' ) ) );
		await page.close();
	} );

	const isolated = async ( what, headersOf ) => test( `modes: ${ what }`, async () => {
		const server = await serve( headersOf );
		const there = `http://127.0.0.1:${ server.port }`;
		try {
			const page = await open( there );
			same( true, await page.evaluate( () => window.crossOriginIsolated ), 'the parent is isolated' );
			const answer = await start( page, there, { scope: 'coi' } );
			same( [ true, true ], [ answer.ok, answer.diagnostics?.crossOriginIsolated ], JSON.stringify( answer ) );
			const frame = siteFrame( page, 'coi' );
			same( [ 'Banner of the sample', 'first' ], [ await frame.locator( '#sample-banner' ).innerText(), await frame.evaluate( () => document.documentElement.dataset.sample ) ] );
			same( undefined, ( await call( page, 'destroy' ) ).code );
			await page.close();
		} finally {
			await server.close();
		}
	} );
	const policies = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'credentialless' };
	await isolated( 'an isolated parent whose server sends the headers with every file', { headers: { ...policies, 'cross-origin-resource-policy': 'cross-origin' } } );
	await isolated( 'an isolated parent whose server sends the headers with its own page only', { pageHeaders: policies } );
	await test( 'modes: no other host was asked', async () => same( [], foreign() ) );
}
