import { launch } from './harness.mjs';
import { serve, trap, source, assets, screens } from './server.mjs';
const site = await serve(); const proxy = await trap(); const chrome = await launch( proxy.port );
const origin = `http://127.0.0.1:${ site.port }`;
try {
	const context = chrome.browser.contexts()[ 0 ];
	const page = await context.newPage();
	page.on( 'console', ( m ) => console.log( 'console', m.type(), m.text().slice( 0, 300 ) ) );
	page.on( 'pageerror', ( e ) => console.log( 'pageerror', e.message ) );
	page.on( 'worker', ( w ) => w.on( 'console', ( m ) => console.log( 'worker', m.text() ) ) );
	await page.goto( `${ origin }/test/page.html` );
	const answer = await page.evaluate( ( [ a, o ] ) => window.start( a, o ), [ assets, { remoteUrl: assets + 'remote.html', scope: 'one', blueprint: { codebox: source( origin ), steps: [ { step: 'activatePlugin', pluginPath: 'sample/sample.php' }, { step: 'login' } ] } } ] );
	console.log( JSON.stringify( answer, null, 1 ) );
	if ( answer.ok ) {
		console.log( await page.evaluate( () => window.client.run( { code: '<?php require "/wordpress/wp-load.php"; echo get_bloginfo("version"), PHP_SAPI, php_uname();' } ).then( ( r ) => r.text + r.errors ) ) );
		await page.screenshot( { path: screens + '/try-front.png' } );
		await page.evaluate( () => window.client.goTo( '/wp-admin/' ) );
		await page.screenshot( { path: screens + '/try-admin.png' } );
	}
	console.log( proxy.asked.filter( ( u ) => ! /google/.test( u ) ), site.log.filter( ( l ) => /site|worker|favicon|sw/.test( l.path ) ).map( ( l ) => l.path ) );
} finally { await chrome.close(); await site.close(); await proxy.close(); }
