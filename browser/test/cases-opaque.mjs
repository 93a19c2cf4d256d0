/** The default mode: documents without an origin on the site itself. */
import { holds, same, soon, test } from './harness.mjs';
import { everything, probe } from './probe.mjs';
import { assets, sample, shot, wordpressVersion } from './server.mjs';
import { call, exec, go, siteFrame, start } from './world.mjs';

export default async function cases( { page: open, origin, site, foreign, forget, context } ) {
	let page;

	await test( 'opaque: WordPress of the site boots and answers PHP', async () => {
		page = await open();
		const answer = await start( page, origin );
		same( true, answer.ok, JSON.stringify( answer ) );
		same( [ '8.3.33', 'jspi', wordpressVersion, 'opaque', 'installer', 'available' ], [ 'php', 'build', 'wordpress', 'isolation', 'database', 'cache' ].map( ( key ) => answer.diagnostics[ key ] ) );
		console.log( `     boot of the first visit: ${ JSON.stringify( answer.diagnostics.milliseconds ) }` );
		const ran = await call( page, 'run', { code: '<?php require "/wordpress/wp-load.php"; echo get_bloginfo( "version" ), "|", ABSPATH, "|", php_uname( "s" );' } );
		same( `${ wordpressVersion }|/wordpress/|Emscripten`, ran.value.text );
		const progress = await page.evaluate( () => window.progress.map( ( one ) => one.fraction ) );
		holds( 'progress never falls and ends at 1', progress.every( ( one, at ) => 0 === at || one >= progress[ at - 1 ] ) && 1 === progress.at( -1 ) );
	} );

	await test( 'opaque: the front page shows the plugin, its style, script and image', async () => {
		const frame = siteFrame( page );
		same( 'Banner of the sample', await frame.locator( '#sample-banner' ).innerText() );
		same( 'first', await frame.evaluate( () => document.documentElement.dataset.sample ) );
		same( 'rgb(1, 2, 3)', await frame.evaluate( () => getComputedStyle( document.getElementById( 'sample-banner' ) ).color ) );
		same( 1, await frame.evaluate( () => document.getElementById( 'sample-image' ).naturalWidth ) );
		await shot( page, 'opaque-front' );
	} );

	await test( 'opaque: an edit of PHP, CSS and JavaScript is on the next page', async () => {
		const root = '/wordpress/wp-content/plugins/sample';
		const php = ( await call( page, 'readFileAsText', `${ root }/sample.php` ) ).value;
		await call( page, 'writeFile', `${ root }/sample.php`, php.replace( 'Banner of the sample', 'Edited banner' ) );
		await call( page, 'writeFile', `${ root }/sample.css`, '#sample-banner { color: rgb(7, 8, 9); }\n' );
		await call( page, 'writeFile', `${ root }/sample.js`, "document.documentElement.dataset.sample = 'zweite – ü';\n" );
		const frame = await go( page, '/' );
		same( 'Edited banner', await frame.locator( '#sample-banner' ).innerText() );
		same( 'zweite – ü', await frame.evaluate( () => document.documentElement.dataset.sample ) );
		same( 'rgb(7, 8, 9)', await frame.evaluate( () => getComputedStyle( document.getElementById( 'sample-banner' ) ).color ) );
		const changed = ( await page.evaluate( async () => ( await window.client.changedFiles() ).map( ( one ) => [ one.path, one.status, one.before?.byteLength, new TextDecoder().decode( one.after ).length > 0 ] ) ) );
		same( [ [ 'plugins/sample/sample.css', 'modified', sample[ 'sample.css' ].byteLength ], [ 'plugins/sample/sample.js', 'modified', sample[ 'sample.js' ].byteLength ] ], changed.slice( 0, 2 ).map( ( one ) => one.slice( 0, 3 ) ) );
		same( [ 'plugins/sample/sample.php', 'modified' ], changed[ 2 ].slice( 0, 2 ) );
		same( 3, changed.length );
	} );

	await test( 'opaque: an edited core style replaces the copy of the parent', async () => {
		const path = '/wordpress/wp-admin/css/login.min.css';
		const frame = await go( page, '/wp-login.php' );
		holds( 'the unchanged style is that of the parent', ( await frame.evaluate( () => document.querySelector( '#login-css' )?.href ?? '' ) ).startsWith( `${ origin }/wp-admin/css/login.min.css` ) );
		const before = ( await call( page, 'readFileAsText', path ) ).value;
		await call( page, 'writeFile', path, `${ before }\nbody.login{outline:3px solid rgb(5, 6, 7)}` );
		const edited = await go( page, '/wp-login.php' );
		same( 'rgb(5, 6, 7)', await edited.evaluate( () => getComputedStyle( document.body ).outlineColor ) );
		await call( page, 'writeFile', path, before );
	} );

	await test( 'opaque: a login by the form opens the dashboard', async () => {
		const frame = await go( page, '/wp-login.php' );
		await frame.fill( '#user_login', 'admin' );
		await frame.fill( '#user_pass', 'password' );
		await frame.click( '#wp-submit' );
		await soon( 'the dashboard is shown', async () => ( await siteFrame( page )?.locator( '#wpbody-content h1' ).first().innerText().catch( () => '' ) ) === 'Dashboard' );
		await siteFrame( page ).waitForLoadState( 'load' );
		same( 'object', await siteFrame( page ).evaluate( () => typeof window.wp ), 'scripts of the dashboard ran' );
		same( '/wp-admin/', new URL( await page.evaluate( () => window.client.getCurrentURL() ), origin ).pathname, 'the path of the frame is known' );
		await shot( page, 'opaque-dashboard' );
	} );

	await test( 'opaque: DOM, cookies, storage and requests of the parent are out of reach; a plain frame reaches them', async () => {
		const control = await page.evaluateHandle( () => new Promise( ( resolve ) => {
			const frame = document.createElement( 'iframe' );
			frame.onload = () => resolve( frame );
			frame.src = '/test/blank.html';
			document.body.append( frame );
		} ) );
		same( everything, await ( await control.contentFrame() ).evaluate( probe ), 'control' );
		const found = await siteFrame( page ).evaluate( probe );
		for ( const [ what, value ] of Object.entries( found ) ) {
			holds( `${ what }: ${ value }`, value.startsWith( 'blocked: ' ) );
		}
		same( 'null', await siteFrame( page ).evaluate( () => self.origin ) );
	} );

	await test( 'opaque: a policy of the sandbox itself cannot loosen the sandbox', async () => {
		await call( page, 'writeFile', '/wordpress/loose.php', '<?php header( "Content-Security-Policy: sandbox allow-scripts allow-same-origin" ); header( "X-Frame-Options: DENY" ); header( "Set-Cookie: a=b" ); echo "<html><body>loose</body></html>";' );
		const frame = await go( page, '/loose.php' );
		same( [ 'loose', 'null' ], await frame.evaluate( () => [ document.body.innerText, self.origin ] ) );
	} );

	await test( 'opaque: a link out of the sandbox shows a sentence instead of the page', async () => {
		const frame = await go( page, '/' );
		await frame.evaluate( () => {
			window.location.href = '/test/page.html';
		} );
		await soon( 'the sentence is shown', async () => ( await siteFrame( page )?.locator( 'h1' ).first().innerText().catch( () => '' ) ) === 'A link to another site' );
		const inside = await go( page, '/?p=1' );
		same( true, ( await inside.title() ).includes( 'Hello world!' ), 'control: a path of the site is shown' );
	} );

	await test( 'opaque: frames within a document show pages of the sandbox, with links, forms and redirects', async () => {
		const php = ( name, code ) => call( page, 'writeFile', `/wordpress/${ name }.php`, `<?php require __DIR__ . '/wp-load.php';\n${ code }` );
		await php( 'inner', 'echo "<html><head><title>inner</title></head><body><p id=\\"said\\">", esc_html( $_SERVER["REQUEST_METHOD"] . " " . ( $_REQUEST["said"] ?? "" ) . " " . wp_get_current_user()->user_login ), "</p><a id=\\"next\\" href=\\"?said=next\\">next</a><form id=\\"post\\" method=\\"post\\" action=\\"inner.php\\"><input name=\\"said\\" value=\\"ü &amp; posted\\"><button>Send</button></form><iframe id=\\"deep\\" src=\\"deep.php\\"></iframe><script>document.documentElement.dataset.ran = 1;</script></body></html>";' );
		await php( 'deep', 'echo "<html><body><p id=\\"said\\">deep</p></body></html>";' );
		await php( 'moved', 'wp_safe_redirect( site_url( "inner.php?said=moved" ) ); exit;' );
		await php( 'outer', 'echo "<html><head></head><body><iframe id=\\"a\\" name=\\"a\\" src=\\"inner.php?said=first\\"></iframe><iframe id=\\"b\\" src=\\"moved.php\\"></iframe><iframe id=\\"c\\" src=\\"https://other.example/\\"></iframe><iframe id=\\"d\\" src=\\"/test/page.html\\"></iframe><form id=\\"to-a\\" method=\\"post\\" action=\\"inner.php\\" target=\\"a\\"><input name=\\"said\\" value=\\"target\\"></form></body></html>";' );
		const outer = await go( page, '/outer.php' );
		const inside = async ( id, within = outer ) => ( await within.locator( `#${ id }` ).elementHandle() ).contentFrame();
		const says = ( id, selector, text, within ) => soon( `${ id }: ${ text }`, async () => text === await ( await inside( id, within ) )?.locator( selector ).first().innerText( { timeout: 1000 } ).catch( () => '' ) );
		await says( 'a', '#said', 'GET first admin' );
		await says( 'b', '#said', 'GET moved admin' );
		await says( 'c', 'h1', 'A frame of another site' );
		await says( 'd', 'h1', 'A frame of another site' );
		same( [ '1', 'null' ], await ( await inside( 'a' ) ).evaluate( () => [ document.documentElement.dataset.ran, self.origin ] ), 'scripts run, without an origin' );
		for ( const [ what, value ] of Object.entries( await ( await inside( 'a' ) ).evaluate( probe ) ) ) {
			holds( `${ what }: ${ value }`, value.startsWith( 'blocked: ' ) );
		}
		await says( 'deep', '#said', 'deep', await inside( 'a' ) );
		await ( await inside( 'a' ) ).locator( '#next' ).click();
		await says( 'a', '#said', 'GET next admin' );
		await ( await inside( 'a' ) ).locator( '#post button' ).click();
		await says( 'a', '#said', 'POST ü & posted admin' );
		await outer.evaluate( () => document.getElementById( 'to-a' ).submit() );
		await says( 'a', '#said', 'POST target admin' );
		await outer.evaluate( () => {
			document.getElementById( 'b' ).src = 'inner.php?said=again';
			document.getElementById( 'd' ).remove();
			document.body.insertAdjacentHTML( 'beforeend', '<iframe id="late" src="inner.php?said=late"></iframe>' );
		} );
		await says( 'b', '#said', 'GET again admin' );
		await says( 'late', '#said', 'GET late admin' );
		await shot( page, 'opaque-frames' );
	} );

	await test( 'opaque: the Customizer says why its preview is empty and which setting makes it work', async () => {
		const frame = await go( page, '/wp-admin/customize.php' );
		await soon( 'the sentence is shown', async () => ( await Promise.all( frame.childFrames().map( ( one ) => one.locator( 'main' ).innerText( { timeout: 1000 } ).catch( () => '' ) ) ) ).some( ( text ) => text.includes( 'WP_CODEBOX_BROWSER_HOST' ) ) );
		await shot( page, 'opaque-customizer' );
	} );

	await test( 'opaque: two sandboxes in two pages do not share files or logins', async () => {
		const other = await open();
		const answer = await start( other, origin, { scope: 'two' } );
		same( true, answer.ok, JSON.stringify( answer ) );
		await call( page, 'writeFile', '/wordpress/wp-content/plugins/sample/only-one.txt', 'x' );
		same( [ true, false ], [ ( await call( page, 'fileExists', '/wordpress/wp-content/plugins/sample/only-one.txt' ) ).value, ( await call( other, 'fileExists', '/wordpress/wp-content/plugins/sample/only-one.txt' ) ).value ] );
		same( 'Edited banner', await ( await go( page, '/' ) ).locator( '#sample-banner' ).innerText() );
		same( 'Banner of the sample', await ( await go( other, '/', 'two' ) ).locator( '#sample-banner' ).innerText() );
		same( [ 1, 0 ], [ await siteFrame( page ).locator( '#wpadminbar' ).count(), await siteFrame( other, 'two' ).locator( '#wpadminbar' ).count() ], 'only the first one is logged in' );
		same( 'cache', answer.diagnostics.database, 'the second one used the database that the first one installed' );
		console.log( `     boot with a cache: ${ JSON.stringify( answer.diagnostics.milliseconds ) }` );
		await other.close();
	} );

	await test( 'opaque: after the browser stopped the service worker, pages still come', async () => {
		const session = await context.newCDPSession( page );
		await session.send( 'ServiceWorker.enable' );
		await session.send( 'ServiceWorker.stopAllWorkers' );
		same( 'Edited banner', await ( await go( page, '/?again=1' ) ).locator( '#sample-banner' ).innerText() );
		await session.detach();
	} );

	await test( 'opaque: a path below the site that is opened when its page is gone shows a sentence', async () => {
		const lonely = await open();
		same( true, ( await start( lonely, origin, { scope: 'gone' } ) ).ok );
		await lonely.goto( `${ origin }/test/blank.html` );
		await lonely.goto( `${ origin }${ assets }site/gone/` );
		same( 'The sandbox is closed', await lonely.locator( 'h1' ).innerText() );
		same( 'null', await lonely.evaluate( () => self.origin ), 'that page has no origin either' );
		await lonely.close();
	} );

	await test( 'opaque: a plugin that breaks while it is loaded shows its error, and mending it brings the page back', async () => {
		const file = '/wordpress/wp-content/plugins/sample/sample.php';
		const good = ( await call( page, 'readFileAsText', file ) ).value;
		await call( page, 'writeFile', file, `${ good }\nno_such_function_here();\n` );
		const broken = await go( page, '/' );
		holds( 'the error is on the page', ( await broken.locator( 'body' ).innerText() ).includes( 'no_such_function_here' ) );
		await shot( page, 'opaque-fatal' );
		await call( page, 'writeFile', file, good );
		same( 'Edited banner', await ( await go( page, '/' ) ).locator( '#sample-banner' ).innerText() );
		await call( page, 'writeFile', file, '<?php this is no PHP' );
		holds( 'a syntax error is on the page', /syntax error|unexpected/i.test( await ( await go( page, '/' ) ).locator( 'body' ).innerText() ) );
		await call( page, 'writeFile', file, good );
		same( 'Edited banner', await ( await go( page, '/' ) ).locator( '#sample-banner' ).innerText() );
		holds( 'the diagnostics name the error', ( await page.evaluate( async () => ( await window.client.diagnostics() ).problems.join() ) ).includes( 'no_such_function_here' ) );
	} );

	await test( 'opaque: no other host was asked; the trap sees one that is', async () => {
		same( [], foreign() );
		same( [], site.log.filter( ( one ) => one.path.includes( '/site/' ) && ! one.path.includes( 'admin-ajax' ) ).map( ( one ) => one.path ), 'requests for files of the sandbox at the real server' );
		await page.evaluate( () => fetch( 'http://other.example/' ).catch( () => {} ) );
		same( [ 'http://other.example/' ], foreign() );
		forget();
	} );

	await test( 'opaque: PHP has no network', async () => {
		const ran = await call( page, 'run', { code: '<?php $began = microtime( true ); $s = @fsockopen( "other2.example", 80, $n, $e, 2 ); if ( $s ) { @fwrite( $s, "GET / HTTP/1.0\r\n\r\n" ); stream_set_timeout( $s, 1 ); echo (string) @fread( $s, 10 ); } require "/wordpress/wp-load.php"; $r = wp_remote_get( "http://other3.example/" ); echo "|", $r->get_error_code();' } );
		same( '|http_request_not_executed', ran.value.text );
		same( [], foreign().filter( ( url ) => /other[23]/.test( url ) ) );
	} );

	await test( 'opaque: memory of the page', async () => {
		const session = await context.newCDPSession( page );
		await session.send( 'Performance.enable' );
		const { metrics } = await session.send( 'Performance.getMetrics' );
		const heap = metrics.find( ( one ) => 'JSHeapUsedSize' === one.name )?.value ?? 0;
		const wasm = await call( page, 'run', { code: '<?php echo memory_get_peak_usage( true );' } );
		console.log( `     JavaScript heap of the page ${ Math.round( heap / 1e6 ) } MB, peak of PHP ${ Math.round( Number( wasm.value.text ) / 1e6 ) } MB` );
		holds( 'measured', heap > 0 );
		await session.detach();
	} );

	await test( 'opaque: destroy ends the worker and unregisters the service worker', async () => {
		same( true, await page.evaluate( async () => ( await navigator.serviceWorker.getRegistrations() ).some( ( one ) => one.scope.endsWith( '/site/one/' ) ) ), 'control: it was registered' );
		await call( page, 'destroy' );
		same( false, await page.evaluate( async () => ( await navigator.serviceWorker.getRegistrations() ).some( ( one ) => one.scope.endsWith( '/site/one/' ) ) ) );
		same( 'wp_codebox_browser_closed', ( await call( page, 'isDir', '/' ) ).code );
		await page.close();
	} );
	void exec;
}
