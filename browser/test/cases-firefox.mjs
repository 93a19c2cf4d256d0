/** The core of the page in Debian's Firefox. */
import { firefox } from './firefox.mjs';
import { holds, same, soon, test } from './harness.mjs';
import { everything, probe } from './probe.mjs';
import { assets, sample, serve, shot, trap, wordpressVersion } from './server.mjs';
import * as parts from './server.mjs';
import { enginePage } from './workbench/engine-page.mjs';
import { call, exec, start } from './world.mjs';

const root = '/wordpress/wp-content/plugins/sample';
/** Firefox's own services, which have nothing to do with a page. */
const own = /(^|\.)(mozilla\.(com|org|net)|firefox\.com|detectportal\.firefox\.com)$/;

/** The frame of a site, as it is now. */
async function siteFrame( page, scope ) {
	const found = async () => ( await page.frames() ).find( ( frame ) => frame.url.includes( `/site/${ scope }/` ) );
	let frame;
	await soon( `a frame of ${ scope }`, async () => undefined !== ( frame = await found() ) );
	return frame;
}

/** Checks that an element in the frame gets the wanted text within a minute. */
async function shows( page, scope, selector, wanted ) {
	let last;
	const condition = async () => {
		try {
			last = await ( await siteFrame( page, scope ) ).evaluate( ( one ) => document.querySelector( one )?.innerText, selector );
		} catch ( thrown ) {
			// The document was replaced during the evaluation.
			last = thrown.message;
		}
		return wanted === last;
	};
	const until = Date.now() + 60000;
	while ( ! await condition() && Date.now() < until ) {
		await new Promise( ( resolve ) => setTimeout( resolve, 50 ) );
	}
	same( wanted, last, selector );
}

async function go( page, path, scope ) {
	await page.evaluate( ( to ) => window.client.goTo( to ), path );
	return siteFrame( page, scope );
}

const failed = ( page, answer ) => `${ JSON.stringify( answer ) } console: ${ page.problems().slice( -5 ).join( ' | ' ) }`;

export default async function cases() {
	const proxy = await trap();
	const site = await serve();
	const origin = `http://127.0.0.1:${ site.port }`;
	const other = `http://localhost:${ site.port }`;
	let browser;
	let page;
	const open = async ( address = origin ) => {
		const opened = await browser.page();
		await opened.goto( `${ address }/test/page.html` );
		return opened;
	};

	await test( 'firefox: it starts', async () => {
		browser = await firefox( proxy.port );
		console.log( `     Firefox ${ browser.version }` );
		holds( 'a version', /^\d+\./.test( browser.version ) );
	} );
	if ( undefined === browser ) {
		await site.close();
		await proxy.close();
		return;
	}

	try {
		await test( 'firefox: WordPress boots with the build of PHP that this browser can run', async () => {
			page = await open();
			const answer = await start( page, origin );
			same( true, answer.ok, failed( page, answer ) );
			const build = await page.evaluate( () => ( 'Suspending' in WebAssembly ? 'jspi' : 'asyncify' ) );
			same( [ '8.3.33', build, wordpressVersion, 'opaque', 'installer', 'available' ], [ 'php', 'build', 'wordpress', 'isolation', 'database', 'cache' ].map( ( key ) => answer.diagnostics[ key ] ) );
			console.log( `     build ${ build }, boot of the first visit: ${ JSON.stringify( answer.diagnostics.milliseconds ) }` );
			const ran = await call( page, 'run', { code: '<?php require "/wordpress/wp-load.php"; echo get_bloginfo( "version" ), "|", php_uname( "s" );' } );
			same( `${ wordpressVersion }|Emscripten`, ran.value.text );
		} );

		await test( 'firefox: the front page shows the plugin, its style, script and image', async () => {
			await shows( page, 'one', '#sample-banner', 'Banner of the sample' );
			const frame = await siteFrame( page, 'one' );
			same( [ 'first', 'rgb(1, 2, 3)', 1 ], await frame.evaluate( () => [ document.documentElement.dataset.sample, getComputedStyle( document.getElementById( 'sample-banner' ) ).color, document.getElementById( 'sample-image' ).naturalWidth ] ) );
			await shot( page, 'firefox-front' );
		} );

		await test( 'firefox: an edit of PHP, CSS and JavaScript is on the next page and in the list of changes', async () => {
			const php = ( await call( page, 'readFileAsText', `${ root }/sample.php` ) ).value;
			await call( page, 'writeFile', `${ root }/sample.php`, php.replace( 'Banner of the sample', 'Edited banner' ) );
			await call( page, 'writeFile', `${ root }/sample.css`, '#sample-banner { color: rgb(7, 8, 9); }\n' );
			await call( page, 'writeFile', `${ root }/sample.js`, "document.documentElement.dataset.sample = 'zweite – ü';\n" );
			await go( page, '/?again', 'one' );
			await shows( page, 'one', '#sample-banner', 'Edited banner' );
			const frame = await siteFrame( page, 'one' );
			same( [ 'zweite – ü', 'rgb(7, 8, 9)' ], await frame.evaluate( () => [ document.documentElement.dataset.sample, getComputedStyle( document.getElementById( 'sample-banner' ) ).color ] ) );
			const changed = await page.evaluate( async () => ( await window.client.changedFiles() ).map( ( one ) => [ one.path, one.status, one.before?.byteLength ] ) );
			same( [ 'css', 'js', 'php' ].map( ( kind ) => [ `plugins/sample/sample.${ kind }`, 'modified', sample[ `sample.${ kind }` ].byteLength ] ), changed );
		} );

		await test( 'firefox: a login by the form opens the dashboard', async () => {
			const frame = await go( page, '/wp-login.php', 'one' );
			await soon( 'the form is there', () => frame.evaluate( () => null !== document.querySelector( '#loginform' ) ) );
			await frame.evaluate( () => {
				document.querySelector( '#user_login' ).value = 'admin';
				document.querySelector( '#user_pass' ).value = 'password';
				document.querySelector( '#wp-submit' ).click();
			} );
			await shows( page, 'one', '#wpbody-content h1', 'Dashboard' );
			const dashboard = await siteFrame( page, 'one' );
			await soon( 'its document is complete', () => dashboard.evaluate( () => 'complete' === document.readyState ) );
			same( 'object', await dashboard.evaluate( () => typeof window.wp ), 'scripts of the dashboard ran' );
			await shot( page, 'firefox-dashboard' );
		} );

		await test( 'firefox: DOM, cookies, storage and requests of the parent are out of reach; a plain frame reaches them', async () => {
			await page.evaluate( () => new Promise( ( resolve ) => {
				const frame = document.createElement( 'iframe' );
				frame.onload = () => resolve( true );
				frame.src = '/test/blank.html';
				document.body.append( frame );
			} ) );
			const control = ( await page.frames() ).find( ( frame ) => frame.url.endsWith( '/test/blank.html' ) );
			same( everything, await control.evaluate( probe ), 'control' );
			const frame = await siteFrame( page, 'one' );
			for ( const [ what, value ] of Object.entries( await frame.evaluate( probe ) ) ) {
				holds( `${ what }: ${ value }`, value.startsWith( 'blocked: ' ) );
			}
			same( 'null', await frame.evaluate( () => self.origin ) );
		} );

		await test( 'firefox: a policy of the sandbox itself cannot loosen the sandbox', async () => {
			await call( page, 'writeFile', '/wordpress/loose.php', '<?php header( "Content-Security-Policy: sandbox allow-scripts allow-same-origin" ); header( "X-Frame-Options: DENY" ); echo "<html><body><p>loose</p></body></html>";' );
			await go( page, '/loose.php', 'one' );
			await shows( page, 'one', 'p', 'loose' );
			same( 'null', await ( await siteFrame( page, 'one' ) ).evaluate( () => self.origin ) );
		} );

		await test( 'firefox: a link out of the sandbox shows a sentence instead of the page', async () => {
			const frame = await go( page, '/', 'one' );
			await frame.evaluate( () => {
				setTimeout( () => {
					window.location.href = '/test/page.html';
				} );
			} );
			await shows( page, 'one', 'h1', 'A link to another site' );
			await go( page, '/?p=1', 'one' );
			await shows( page, 'one', '#sample-banner', 'Edited banner' );
		} );

		await test( 'firefox: commands of the terminal stream their output', async () => {
			same( [ 0, '8.3.33' ], await exec( page, 'php', [ '-r', 'echo PHP_VERSION;' ] ).then( ( { exitCode, stdout } ) => [ exitCode, stdout ] ) );
			same( 'wp_codebox_browser_command_unsupported', ( await exec( page, 'npm' ) ).code );
		} );

		await test( 'firefox: a second sandbox starts from the cache and shares neither files nor logins', async () => {
			const second = await open();
			const answer = await start( second, origin, { scope: 'two' } );
			same( [ true, 'cache' ], [ answer.ok, answer.diagnostics?.database ], failed( second, answer ) );
			await shows( second, 'two', '#sample-banner', 'Banner of the sample' );
			await go( page, '/', 'one' );
			await shows( page, 'one', '#sample-banner', 'Edited banner' );
			const bars = async ( one, scope ) => ( await siteFrame( one, scope ) ).evaluate( () => document.querySelectorAll( '#wpadminbar' ).length );
			same( [ 1, 0 ], [ await bars( page, 'one' ), await bars( second, 'two' ) ], 'only the first one is logged in' );
			await second.close();
		} );

		await test( 'firefox: the other build of PHP boots when it is asked for', async () => {
			const third = await open();
			const answer = await start( third, origin, { scope: 'asyncify', codebox: { php_build: 'asyncify' } } );
			same( [ true, 'asyncify' ], [ answer.ok, answer.diagnostics?.build ], failed( third, answer ) );
			await shows( third, 'asyncify', '#sample-banner', 'Banner of the sample' );
			await third.close();
		} );

		await test( 'firefox: the same session in a second tab is refused, and a reload takes it over', async () => {
			const second = await open();
			const refused = await start( second, origin, { scope: 'one' } );
			same( [ false, 'wp_codebox_browser_boot_failed' ], [ refused.ok, refused.code ], failed( second, refused ) );
			await second.close();
			await page.reload();
			const again = await start( page, origin );
			same( [ true, 'cache' ], [ again.ok, again.diagnostics?.database ], failed( page, again ) );
			await shows( page, 'one', '#sample-banner', 'Banner of the sample' );
		} );

		await test( 'firefox: the page of a session edits a file, shows the change and sends it to the site', async () => {
			const session = await browser.page();
			await session.goto( enginePage( site, parts ) );
			await soon( 'the page is ready', () => session.evaluate( () => document.querySelector( '.wp-codebox-log' )?.textContent.includes( '[System] Ready' ) ), 120000 );
			const ran = await session.evaluate( async () => {
				const { events, tools } = window.wpCodeboxBrowser;
				events.emit( { type: 'SYSTEM_FILE_SYNC', payload: { path: 'new.txt', content: 'written in Firefox\n' } } );
				return tools.call( 'run_terminal_command', { command: 'cat', args: [ 'new.txt' ] } );
			} );
			same( [ 0, 'written in Firefox\n' ], [ ran.exitCode, ran.stdout ] );
			await soon( 'the change is listed', () => session.evaluate( () => [ ...document.querySelectorAll( '[role=tab]' ) ].some( ( tab ) => tab.textContent.includes( '(1)' ) ) ) );
			const button = 'Keep as a bundle';
			await soon( 'it can be kept', () => session.evaluate( ( text ) => [ ...document.querySelectorAll( 'button' ) ].some( ( one ) => one.textContent === text && ! one.disabled ), button ) );
			await session.evaluate( ( text ) => [ ...document.querySelectorAll( 'button' ) ].find( ( one ) => one.textContent === text ).click(), button );
			await soon( 'it is stored', () => session.evaluate( () => document.querySelector( '.wp-codebox-keep' ).innerText.includes( 'is stored' ) ) );
			const { input } = JSON.parse( site.log.find( ( one ) => '/keep' === one.path ).body );
			same( [ [ 'plugins/sample/new.txt', 'written in Firefox\n' ] ], input.files.map( ( one ) => [ one.path, Buffer.from( one.content_base64, 'base64' ).toString() ] ) );
			await shot( session, 'firefox-page' );
			await session.close();
		} );

		await test( 'firefox: full mode on another host has REST', async () => {
			site.own.set( `${ assets }separate-host.json`, Buffer.from( JSON.stringify( { origin: other, embedders: [ origin ] } ) ) );
			const full = await open();
			const answer = await start( full, origin, { scope: 'full', remoteUrl: `${ other }${ assets }remote.html`, codebox: { isolation: 'separate-host' } } );
			same( true, answer.ok, failed( full, answer ) );
			await shows( full, 'full', '#sample-banner', 'Banner of the sample' );
			same( [ other, false ], await ( await siteFrame( full, 'full' ) ).evaluate( async () => [ self.origin, ( await ( await fetch( '?rest_route=/sample/v1/who' ) ).json() ).user ] ) );
			await full.close();
		} );

		await test( 'firefox: no other host was asked; the trap sees one that is', async () => {
			const foreign = () => proxy.asked.filter( ( url ) => ! own.test( url.includes( '://' ) ? new URL( url ).hostname : url.split( ':' )[ 0 ] ) );
			same( [], foreign() );
			await page.evaluate( () => fetch( 'http://other.example/' ).then( () => true, () => false ) );
			same( [ 'http://other.example/' ], foreign() );
		} );

		await test( 'firefox: destroy ends the worker and unregisters the service worker', async () => {
			const registered = () => page.evaluate( async () => ( await navigator.serviceWorker.getRegistrations() ).some( ( one ) => one.scope.endsWith( '/site/one/' ) ) );
			same( true, await registered(), 'control' );
			await call( page, 'destroy' );
			same( [ false, 'wp_codebox_browser_closed' ], [ await registered(), ( await call( page, 'isDir', '/' ) ).code ] );
		} );
	} finally {
		await browser.close();
		await site.close();
		await proxy.close();
	}
}
