/** Everything that can stop a boot has a code and a sentence, and everything that need not stop it does not. */
import { holds, same, test } from './harness.mjs';
import { randomBytes } from 'node:crypto';
import { assets, core, fileOf, source, wordpressVersion, zip } from './server.mjs';
import { call, go, siteFrame, start } from './world.mjs';

/** The same archive with a comment at its end, and therefore with another hash. */
function updated( archive ) {
	const comment = Buffer.from( 'updated' );
	const bytes = Buffer.concat( [ archive, comment ] );
	bytes.writeUInt16LE( comment.length, archive.lastIndexOf( Buffer.from( [ 0x50, 0x4b, 5, 6 ] ) ) + 20 );
	return bytes;
}

export default async function cases( { page: open, origin, site, context } ) {
	let count = 0;
	/** A boot that must fail with a code, in a page prepared by a script. */
	const fails = async ( code, { prepare, ...options } ) => {
		const page = await open( origin, prepare );
		const answer = await start( page, origin, { scope: `f${ ( count += 1 ) }`, ...options } );
		same( [ false, code ], [ answer.ok, answer.code ], JSON.stringify( answer ) );
		holds( `a sentence: ${ answer.message }`, / .*\.$/.test( answer.message ) );
		same( [], await page.evaluate( async () => ( await navigator.serviceWorker?.getRegistrations() ?? [] ).map( ( one ) => one.scope ).filter( ( scope ) => scope.includes( '/site/f' ) ) ).catch( () => [] ), 'no service worker stays' );
		await page.close();
		return answer;
	};

	await test( 'failures: a browser without service workers', () => fails( 'wp_codebox_browser_no_service_worker', { prepare: () => delete Navigator.prototype.serviceWorker } ) );
	await test( 'failures: a browser that refuses to register service workers', () => fails( 'wp_codebox_browser_no_service_worker', { prepare: () => {
		ServiceWorkerContainer.prototype.register = () => Promise.reject( new DOMException( 'denied', 'SecurityError' ) );
	} } ) );
	await test( 'failures: a browser without DecompressionStream', () => fails( 'wp_codebox_browser_no_decompression', { prepare: () => delete window.DecompressionStream } ) );

	await test( 'failures: a file whose contents are not those announced', async () => {
		const core = source( origin ).core;
		const answer = await fails( 'wp_codebox_browser_asset_hash_mismatch', { codebox: { core: { ...core, sha256: 'a'.repeat( 64 ) } } } );
		holds( 'the file is named', answer.message.includes( 'core.zip' ) );
	} );
	await test( 'failures: a file that the site does not serve', async () => {
		const core = source( origin ).core;
		const answer = await fails( 'wp_codebox_browser_asset_missing', { codebox: { core: { ...core, url: `${ origin }/files/absent.zip?token=secret`, sha256: 'b'.repeat( 64 ) } } } );
		holds( 'named without its token', answer.message.includes( 'absent.zip' ) && ! answer.message.includes( 'secret' ) );
	} );
	await test( 'failures: a runtime list without PHP', () => fails( 'wp_codebox_browser_asset_missing', { codebox: { runtime: { base_url: `${ origin }/x/`, files: [] } } } ) );
	await test( 'failures: a file on another host', () => fails( 'wp_codebox_browser_asset_missing', { codebox: { core: { ...source( origin ).core, url: 'http://other.example/core.zip', sha256: 'c'.repeat( 64 ) } } } ) );
	await test( 'failures: the remote page is missing', () => fails( 'wp_codebox_browser_asset_missing', { remoteUrl: `${ assets }absent.html` } ) );
	await test( 'failures: an archive that is no archive', () => {
		site.own.set( '/files/broken.zip', Buffer.from( 'no zip' ) );
		return fails( 'wp_codebox_browser_boot_failed', { codebox: { core: { ...fileOf( origin, '/files/broken.zip', Buffer.from( 'no zip' ) ), key: 'broken' } } } );
	} );
	await test( 'failures: an archive whose entry leaves its directory', () => {
		const evil = Buffer.from( zip( { '../../../evil.php': new Uint8Array( [ 1 ] ) } ) );
		site.own.set( '/files/evil.zip', evil );
		return fails( 'wp_codebox_browser_boot_failed', { codebox: { roots: [ { target: 'plugins/sample', path: '/wordpress/wp-content/plugins/sample', archive: fileOf( origin, '/files/evil.zip', evil ) } ] } } );
	} );
	await test( 'failures: a step of the blueprint that is not supported', () => fails( 'wp_codebox_browser_step_unsupported', { blueprint: { steps: [ { step: 'resetData' } ] } } ) );
	await test( 'failures: a scope that is no name', () => fails( 'wp_codebox_browser_boot_failed', { scope: '../x' } ) );

	await test( 'failures: a boot that is aborted ends as closed', async () => {
		const page = await open();
		const answer = await page.evaluate( async ( [ base, codebox ] ) => {
			const control = new AbortController();
			return window.start( base, { remoteUrl: `${ base }remote.html`, scope: 'aborted', blueprint: { codebox }, signal: control.signal, onProgress: () => control.abort() } );
		}, [ assets, source( origin ) ] );
		same( 'wp_codebox_browser_closed', answer.code );
		await page.close();
	} );

	await test( 'failures: a worker that cannot start', async () => {
		site.own.set( `${ assets }worker.js`, Buffer.from( 'this is no script' ) );
		try {
			await fails( 'wp_codebox_browser_boot_failed', {} );
		} finally {
			site.own.delete( `${ assets }worker.js` );
		}
	} );

	await test( 'failures: without storage the sandbox works, and says so', async () => {
		const page = await open( origin, () => {
			CacheStorage.prototype.open = () => Promise.reject( new DOMException( 'denied', 'SecurityError' ) );
		} );
		const answer = await start( page, origin, { scope: 'denied' } );
		same( [ true, 'denied', 'installer' ], [ answer.ok, answer.diagnostics?.cache, answer.diagnostics?.database ], JSON.stringify( answer ) );
		same( [ 'wp_codebox_browser_storage_denied' ], await page.evaluate( () => window.progress.filter( ( one ) => 'notice' === one.stage ).map( ( one ) => one.notice.code ) ) );
		await page.close();
	} );
	await test( 'failures: with full storage the sandbox works, and says so', async () => {
		const page = await open( origin, () => {
			Cache.prototype.put = () => Promise.reject( new DOMException( 'full', 'QuotaExceededError' ) );
			Cache.prototype.match = () => Promise.resolve( undefined );
		} );
		const answer = await start( page, origin, { scope: 'full' } );
		same( [ true, 'full' ], [ answer.ok, answer.diagnostics?.cache ], JSON.stringify( answer ) );
		same( [ 'wp_codebox_browser_storage_full' ], await page.evaluate( () => window.progress.filter( ( one ) => 'notice' === one.stage ).map( ( one ) => one.notice.code ) ) );
		await page.close();
	} );

	await test( 'failures: when the quota of the browser is used up the sandbox works, and says so', async () => {
		const page = await open();
		const session = await context.newCDPSession( page );
		const notices = () => page.evaluate( () => window.progress.filter( ( one ) => 'notice' === one.stage ).map( ( one ) => one.notice.code ) );
		await page.evaluate( () => caches.delete( 'wp-codebox-browser-v1' ) );
		await session.send( 'Storage.overrideQuotaForOrigin', { origin, quotaSize: 2_000_000 } );
		const answer = await start( page, origin, { scope: 'quota' } );
		same( [ true, 'full', 'installer' ], [ answer.ok, answer.diagnostics?.cache, answer.diagnostics?.database ], JSON.stringify( answer ) );
		same( [ 'wp_codebox_browser_storage_full' ], await notices() );
		same( 'Banner of the sample', await siteFrame( page, 'quota' ).locator( '#sample-banner' ).innerText() );
		await session.send( 'Storage.overrideQuotaForOrigin', { origin } );
		await session.detach();
		await page.reload();
		const control = await start( page, origin, { scope: 'quota' } );
		same( [ true, 'available', 'installer' ], [ control.ok, control.diagnostics?.cache, control.diagnostics?.database ], 'control: with space, and nothing was kept before' );
		same( [], await notices() );
		await page.close();
	} );

	await test( 'failures: after an update of WordPress neither its old database nor its old archive is used or kept', async () => {
		const after = updated( core );
		site.own.set( '/files/core-after.zip', after );
		const next = { core: { ...fileOf( origin, '/files/core-after.zip', after ), key: `wp-${ wordpressVersion }-after` } };
		const before = source( origin ).core.sha256;
		const opened = async ( scope, codebox ) => {
			const page = await open();
			const answer = await start( page, origin, { scope, codebox } );
			const kept = await page.evaluate( async () => ( await ( await caches.open( 'wp-codebox-browser-v1' ) ).keys() ).map( ( one ) => new URL( one.url ).pathname ) );
			await page.close();
			return { database: answer.diagnostics?.database, cores: [ before, next.core.sha256, 'other' ].map( ( sha256 ) => kept.includes( `/wp-codebox-browser-cache/file/${ sha256 }` ) ), databases: kept.filter( ( path ) => path.includes( '/database/' ) ).length };
		};
		const prepare = await open();
		await prepare.evaluate( async () => {
			await caches.delete( 'wp-codebox-browser-v1' );
			// The core archive of another site on this origin.
			await ( await caches.open( 'wp-codebox-browser-v1' ) ).put( '/wp-codebox-browser-cache/file/other', new Response( 'x', { headers: { 'x-sha256': 'x', 'x-kept': String( Date.now() ), 'x-owner': `${ location.origin }/elsewhere/wp-includes/ core` } } ) );
		} );
		await prepare.close();
		same( { database: 'installer', cores: [ true, false, true ], databases: 1 }, await opened( 'u1' ) );
		same( { database: 'cache', cores: [ true, false, true ], databases: 1 }, await opened( 'u2' ), 'control: without an update' );
		same( { database: 'installer', cores: [ false, true, true ], databases: 1 }, await opened( 'u3', next ), 'after the update' );
		same( { database: 'cache', cores: [ false, true, true ], databases: 1 }, await opened( 'u4', next ), 'the new ones are kept' );
	} );

	await test( 'failures: a bundle of 50 MB opens, and its files are changes', async () => {
		const names = Array.from( { length: 10 }, ( _one, at ) => `media/${ at }.bin` );
		const bundle = Buffer.from( zip( Object.fromEntries( names.map( ( name ) => [ name, [ new Uint8Array( randomBytes( 5 << 20 ) ), { level: 0 } ] ] ) ) ) );
		site.own.set( '/files/large.zip', bundle );
		const page = await open();
		const [ root ] = source( origin ).roots;
		const answer = await start( page, origin, { scope: 'large', codebox: { roots: [ { ...root, overlay: fileOf( origin, '/files/large.zip', bundle ) } ] } } );
		same( true, answer.ok, JSON.stringify( answer ) );
		same( names.map( ( name ) => [ `plugins/sample/${ name }`, 'added', 5 << 20 ] ), await page.evaluate( async () => ( await window.client.changedFiles() ).map( ( one ) => [ one.path, one.status, one.after.byteLength ] ) ) );
		same( 'Banner of the sample', await ( await go( page, '/?large', 'large' ) ).locator( '#sample-banner' ).innerText() );
		await page.close();
	} );
	await test( 'failures: a bundle that unpacks to more than the tab can hold is refused with the name of its plugin', async () => {
		const empty = new Uint8Array( 60 << 20 );
		const bomb = Buffer.from( zip( Object.fromEntries( Array.from( { length: 5 }, ( _one, at ) => [ `${ at }.bin`, empty ] ) ) ) );
		site.own.set( '/files/bomb.zip', bomb );
		const [ root ] = source( origin ).roots;
		const answer = await fails( 'wp_codebox_browser_seed_too_large', { codebox: { roots: [ { ...root, overlay: fileOf( origin, '/files/bomb.zip', bomb ) } ] } } );
		holds( answer.message, answer.message.includes( 'plugins/sample' ) );
	} );

	await test( 'failures: a plugin that breaks when it is activated leaves a sandbox in which it can be mended', async () => {
		const broken = Buffer.from( zip( { 'broken.php': new TextEncoder().encode( '<?php /* Plugin Name: Broken */ absent_function();' ) } ) );
		site.own.set( '/files/broken-plugin.zip', broken );
		const page = await open();
		const answer = await start( page, origin, { scope: 'mend', blueprint: { steps: [ { step: 'activatePlugin', pluginPath: 'broken/broken.php' } ] }, codebox: { roots: [ { target: 'plugins/broken', path: '/wordpress/wp-content/plugins/broken', archive: fileOf( origin, '/files/broken-plugin.zip', broken ) } ] } } );
		same( true, answer.ok, JSON.stringify( answer ) );
		holds( `the reason is told: ${ answer.diagnostics.problems.join() }`, answer.diagnostics.problems.join().includes( 'absent_function' ) );
		holds( 'the front page is shown', ( await siteFrame( page, 'mend' ).locator( 'body' ).innerText() ).includes( 'Hello world!' ) );
		await call( page, 'writeFile', '/wordpress/wp-content/plugins/broken/broken.php', '<?php /* Plugin Name: Broken */' );
		same( undefined, ( await call( page, 'runBlueprint', { steps: [ { step: 'activatePlugin', pluginPath: 'broken/broken.php' } ] } ) ).code );
		await page.close();
	} );

	await test( 'failures: the same session in a second window is refused, and a reload takes it over', async () => {
		const first = await open();
		same( true, ( await start( first, origin, { scope: 'same' } ) ).ok );
		await call( first, 'writeFile', '/wordpress/wp-content/plugins/sample/kept-not.txt', 'x' );
		const second = await open();
		const refused = await start( second, origin, { scope: 'same' } );
		same( [ false, 'wp_codebox_browser_boot_failed' ], [ refused.ok, refused.code ] );
		await first.reload();
		const again = await start( first, origin, { scope: 'same' } );
		same( [ true, 'cache' ], [ again.ok, again.diagnostics?.database ], JSON.stringify( again ) );
		same( 'Banner of the sample', await siteFrame( first, 'same' ).locator( '#sample-banner' ).innerText() );
		await first.close();
		await second.close();
	} );
}
