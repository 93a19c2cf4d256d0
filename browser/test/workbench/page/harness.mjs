/**
 * A small site that serves the page of a browser session, and a Chromium with stock flags.
 */
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { source } from '../load.mjs';

const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.html': 'text/html; charset=utf-8', '.json': 'application/json', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' };

/** Builds the page, and serves it from a port that the kernel chooses. */
export async function serve() {
	const directory = mkdtempSync( join( tmpdir(), 'workbench-page-' ) );
	const client = fileURLToPath( new URL( 'client.mjs', import.meta.url ) );
	await build( { entryPoints: { workbench: join( source, 'main.ts' ), client }, outdir: directory, bundle: true, format: 'esm', minify: true, target: 'es2022', logLevel: 'error' } );
	/** What the site answers; tests replace it. */
	const site = { settings: {}, hydrate: () => [ 200, { success: true, blueprint: { landingPage: '/' } } ], keep: () => [ 200, { success: true, artifact_id: 'artifact-bundle-sha256-' + 'ab'.repeat( 32 ) } ], requests: [], extra: '', scripts: {} };
	const wordpress = process.env.CODEBOX_WORDPRESS ?? '';
	const server = createServer( async ( request, response ) => {
		const url = new URL( request.url, 'http://127.0.0.1' );
		const send = ( status, type, body ) => response.writeHead( status, { 'Content-Type': type, 'Cache-Control': 'no-store' } ).end( body );
		const chunks = [];
		for await ( const chunk of request ) {
			chunks.push( chunk );
		}
		const body = Buffer.concat( chunks ).toString();
		const route = { '/hydrate': 'hydrate', '/keep': 'keep', '/abilities/browser-connector-request/run': 'connector' };
		const name = route[ url.pathname ];
		if ( name ) {
			site.requests.push( { name, method: request.method, nonce: request.headers[ 'x-wp-nonce' ], query: url.search, body: body ? JSON.parse( body ) : null } );
			const answer = await site[ name ]( request.method, body ? JSON.parse( body ) : null );
			if ( null === answer ) {
				response.destroy();
			} else {
				send( answer[ 0 ], 'application/json', 'string' === typeof answer[ 1 ] ? answer[ 1 ] : JSON.stringify( answer[ 1 ] ) );
			}
		} else if ( '/' === url.pathname ) {
			send( 200, TYPES[ '.html' ], page( site.settings, '' !== wordpress, site.extra ) );
		} else if ( site.scripts[ url.pathname ] ) {
			send( 200, TYPES[ '.js' ], site.scripts[ url.pathname ] );
		} else {
			const file = url.pathname.startsWith( '/wp/' ) ? join( wordpress, normalize( url.pathname.slice( 3 ) ) ) : join( directory, normalize( url.pathname ) );
			if ( existsSync( file ) && TYPES[ extname( file ) ] ) {
				send( 200, TYPES[ extname( file ) ], readFileSync( file ) );
			} else {
				send( 404, 'text/plain', 'not found' );
			}
		}
	} );
	await new Promise( ( done ) => server.listen( 0, '127.0.0.1', done ) );
	return {
		site,
		directory,
		url: `http://127.0.0.1:${ server.address().port }/`,
		close() {
			server.closeAllConnections();
			server.close();
			rmSync( directory, { recursive: true, force: true } );
		},
	};
}

/** Returns a page with the frame of wp-admin, when there is a WordPress to take its styles from. */
function page( settings, styled, extra ) {
	const all = {
		client_module_url: '/client.js',
		remote_url: '/remote.html',
		scope: 'one',
		session: { session_id: 'session-one' },
		blueprint_ref: { ref: 'prepared:one:' + '0'.repeat( 64 ) },
		hydrate: { url: '/hydrate', nonce: 'nonce-h' },
		keep: { url: '/keep', nonce: 'nonce-k' },
		roots: [ { target: 'plugins/demo', path: '/wordpress/wp-content/plugins/demo', label: 'Demo' } ],
		isolation: 'opaque',
		can_keep: true,
		review_url: '/review?bundle=%s',
		...settings,
	};
	const styles = styled ? [ 'dashicons', 'buttons' ].map( ( name ) => `/wp/wp-includes/css/${ name }.css` ).concat( [ 'common', 'forms', 'admin-menu' ].map( ( name ) => `/wp/wp-admin/css/${ name }.css` ) ) : [];
	return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Browser sandbox</title>
${ styles.map( ( href ) => `<link rel="stylesheet" href="${ href }">` ).join( '' ) }<link rel="stylesheet" href="/workbench.css">
<style>#wpcontent{margin-left:160px;padding-left:20px}@media(max-width:782px){#wpcontent{margin-left:0;padding-left:10px}#adminmenuback{display:none}}</style></head>
<body class="wp-admin wp-core-ui"><div id="adminmenuback"></div><div id="wpcontent"><div id="wpbody-content"><div class="wrap"><h1>Browser sandbox: Demo</h1><div id="wp-codebox-browser"></div></div></div></div>
<script>window.wpCodeboxBrowserPage=${ JSON.stringify( all ).replaceAll( '<', '\\u003c' ) };</script><script type="module" src="/workbench.js"></script>${ extra }</body></html>`;
}

/** Starts Chromium with its own defaults and connects over CDP: playwright's switches change how storage works. */
export async function browser() {
	const profile = mkdtempSync( join( tmpdir(), 'workbench-profile-' ) );
	const flags = [ '--headless=new', '--remote-debugging-port=0', `--user-data-dir=${ profile }`, '--no-first-run', '--disable-gpu', '--disable-dev-shm-usage' ];
	const child = spawn( process.env.BROWSER || 'chromium', [ ...flags, ...( 0 === process.getuid() ? [ '--no-sandbox' ] : [] ), 'about:blank' ], { stdio: [ 'ignore', 'ignore', 'pipe' ] } );
	const address = await new Promise( ( done, fail ) => {
		let said = '';
		child.stderr.on( 'data', ( data ) => {
			said += data;
			const found = /DevTools listening on (\S+)/.exec( said );
			if ( found ) {
				done( found[ 1 ] );
			}
		} );
		child.on( 'exit', () => fail( new Error( said ) ) );
		child.on( 'error', fail );
	} );
	const connected = await chromium.connectOverCDP( address );
	return {
		connected,
		async close() {
			await connected.close().catch( () => {} );
			child.kill( 'SIGKILL' );
			await new Promise( ( done ) => child.once( 'close', done ) );
			rmSync( profile, { recursive: true, force: true, maxRetries: 5 } );
		},
	};
}
