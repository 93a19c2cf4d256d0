/** Full mode on another host in browsers that separate or refuse the storage of frames of other sites. */
import { holds, launch, same, test } from './harness.mjs';
import { assets, serve, trap } from './server.mjs';
import { siteFrame, start } from './world.mjs';

/** Opens full mode in a Chromium with these preferences. */
async function opened( preferences, use ) {
	const proxy = await trap();
	const site = await serve();
	const origin = `http://127.0.0.1:${ site.port }`;
	const other = `http://localhost:${ site.port }`;
	site.own.set( `${ assets }separate-host.json`, Buffer.from( JSON.stringify( { origin: other, embedders: [ origin ] } ) ) );
	const chrome = await launch( proxy.port, preferences );
	try {
		const page = await chrome.browser.contexts()[ 0 ].newPage();
		page.setDefaultTimeout( 120000 );
		await page.goto( `${ origin }/test/page.html` );
		/** What a frame of the other host can keep. */
		const keeps = await page.evaluate( ( url ) => new Promise( ( resolve ) => {
			window.addEventListener( 'message', ( event ) => resolve( event.data ), { once: true } );
			const frame = document.createElement( 'iframe' );
			frame.src = url;
			document.body.append( frame );
		} ), `${ other }/test/storage.html` );
		const answer = await start( page, origin, { scope: 'full', remoteUrl: `${ other }${ assets }remote.html`, codebox: { isolation: 'separate-host' } } );
		await use( { page, answer, keeps, other } );
	} finally {
		await chrome.close();
		await site.close();
		await proxy.close();
	}
}

export default async function cases() {
	await test( 'blocked: full mode works where frames of other sites get no cookies and a storage of their own', () => opened( { profile: { cookie_controls_mode: 1, block_third_party_cookies: true } }, async ( { page, answer, keeps, other } ) => {
		same( { cookie: false, storage: true }, keeps, 'control: what the browser allows such a frame' );
		same( true, answer.ok, JSON.stringify( answer ) );
		const frame = siteFrame( page, 'full' );
		same( [ other, 'Banner of the sample', false ], [ await frame.evaluate( () => self.origin ), await frame.locator( '#sample-banner' ).innerText(), await frame.evaluate( async () => ( await ( await fetch( '?rest_route=/sample/v1/who' ) ).json() ).user ) ] );
	} ) );

	await test( 'blocked: a browser that lets the other host keep nothing says which host and what to allow', () => opened( { profile: { content_settings: { exceptions: { cookies: { 'localhost,*': { setting: 2 } } } } } }, async ( { page, answer, keeps } ) => {
		same( { cookie: false, storage: false }, keeps, 'control: what the browser allows such a frame' );
		same( [ false, 'wp_codebox_browser_no_service_worker' ], [ answer.ok, answer.code ], JSON.stringify( answer ) );
		holds( `${ answer.message } ${ answer.hint }`, / .*\.$/.test( answer.message ) && answer.hint.includes( 'Allow localhost to keep site data' ) );
		same( 'about:blank', await page.evaluate( () => document.getElementById( 'sandbox' ).src ), 'no blank page of the sandbox stays' );
	} ) );
}
