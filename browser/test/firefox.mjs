/**
 * Debian's Firefox over WebDriver BiDi, with its own defaults. Pages and frames have the few functions of Playwright that the
 * cases use: `evaluate`, `goto`, `reload`, `close`.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { account, profileFor } from './harness.mjs';
import { webSocket } from './web-socket.mjs';

/** Preferences that turn off Firefox's own requests and send all requests for other machines to the recording proxy `trap`. */
const preferences = ( trap ) => ( {
	'network.proxy.type': 1,
	'network.proxy.http': '127.0.0.1', 'network.proxy.http_port': trap,
	'network.proxy.ssl': '127.0.0.1', 'network.proxy.ssl_port': trap,
	'network.captive-portal-service.enabled': false,
	'network.connectivity-service.enabled': false,
	'network.dns.disablePrefetch': true,
	'app.normandy.enabled': false,
	'app.update.disabledForTesting': true,
	'browser.safebrowsing.downloads.remote.enabled': false,
	'browser.shell.checkDefaultBrowser': false,
	'datareporting.policy.dataSubmissionEnabled': false,
	'toolkit.telemetry.server': '',
	'services.settings.server': 'data:,',
	'media.gmp-manager.updateEnabled': false,
	'extensions.systemAddon.update.enabled': false,
	'extensions.getAddons.cache.enabled': false,
	'extensions.update.enabled': false,
} );

/** Starts Firefox. `pid` is the first of its processes. */
export async function firefox( trap ) {
	const program = process.env.CODEBOX_FIREFOX ?? '/usr/bin/firefox-esr';
	if ( ! existsSync( program ) ) {
		throw new Error( `${ program } is not installed; run: tests/provision packages` );
	}
	const profile = profileFor( 'firefox', ( directory ) => writeFileSync( join( directory, 'user.js' ), Object.entries( preferences( trap ) ).map( ( [ name, value ] ) => `user_pref(${ JSON.stringify( name ) }, ${ JSON.stringify( value ) });\n` ).join( '' ) ) );
	const child = spawn( program, [ '--headless', '--no-remote', '--remote-debugging-port=0', '--profile', profile, 'about:blank' ], { ...account(), env: { PATH: '/usr/bin:/bin', HOME: profile, LANG: 'C.UTF-8', MOZ_HEADLESS_WIDTH: '1280', MOZ_HEADLESS_HEIGHT: '900' }, stdio: [ 'ignore', 'ignore', 'ignore' ] } );
	const ended = new Promise( ( resolve ) => child.once( 'exit', resolve ) );
	const told = join( profile, 'WebDriverBiDiServer.json' );
	const until = Date.now() + 90000;
	let port;
	while ( undefined === port ) {
		if ( Date.now() > until || null !== child.exitCode ) {
			child.kill( 'SIGKILL' );
			throw new Error( 'Firefox did not start' );
		}
		await new Promise( ( resolve ) => setTimeout( resolve, 50 ) );
		try {
			port = JSON.parse( readFileSync( told, 'utf8' ) ).ws_port;
		} catch {
			// Not written yet, or not to its end.
		}
	}
	let connection;
	let capabilities;
	for ( let pause = 50; undefined === capabilities; pause *= 2 ) {
		connection = await session( port );
		// A command right after the handshake can make the server close the connection. Then connect again with a longer pause.
		await new Promise( ( resolve ) => setTimeout( resolve, pause ) );
		try {
			( { capabilities } = await connection.send( 'session.new', { capabilities: { alwaysMatch: { unhandledPromptBehavior: { default: 'accept' } } } } ) );
		} catch ( thrown ) {
			connection.close();
			if ( pause > 10000 || ! /has ended/.test( thrown.message ) ) {
				child.kill( 'SIGKILL' );
				await ended;
				throw thrown;
			}
		}
	}
	await connection.send( 'session.subscribe', { events: [ 'log.entryAdded' ] } );
	return {
		pid: child.pid,
		version: capabilities.browserVersion,
		page: async () => page( connection, ( await connection.send( 'browsingContext.create', { type: 'tab' } ) ).context ),
		close: async () => {
			await connection.send( 'browser.close' ).catch( () => {} );
			const timer = setTimeout( () => child.kill( 'SIGKILL' ), 15000 );
			await ended;
			clearTimeout( timer );
			connection.close();
			rmSync( profile, { recursive: true, force: true, maxRetries: 5 } );
		},
	};
}

/** A BiDi connection: commands with answers, and the messages of consoles by context. */
async function session( port ) {
	const waiting = new Map();
	const problems = new Map();
	let last = 0;
	const socket = await webSocket( port, '/session', ( text ) => {
		const message = JSON.parse( text );
		if ( 'event' === message.type ) {
			const { level, text: said, source } = message.params;
			if ( 'error' === level ) {
				problems.set( source.context, [ ...problems.get( source.context ) ?? [], said ] );
			}
			return;
		}
		const one = waiting.get( message.id );
		waiting.delete( message.id );
		if ( 'success' === message.type ) {
			one?.resolve( message.result );
		} else {
			one?.reject( new Error( `${ one.method }: ${ message.error }: ${ message.message }` ) );
		}
	}, () => {
		waiting.forEach( ( one ) => one.reject( new Error( `${ one.method }: Firefox has ended` ) ) );
		waiting.clear();
	} );
	return {
		problems,
		close: socket.close,
		send: ( method, params = {} ) => new Promise( ( resolve, reject ) => {
			last += 1;
			waiting.set( last, { method, resolve, reject } );
			socket.send( JSON.stringify( { id: last, method, params } ) );
		} ),
	};
}

/** Runs a function in a document. Arguments and value are JSON. */
async function evaluate( connection, context, what, argument ) {
	const answer = await connection.send( 'script.callFunction', {
		functionDeclaration: `async ( text ) => JSON.stringify( await ( ${ what } )( undefined === text ? undefined : JSON.parse( text ) ) )`,
		arguments: undefined === argument ? [ { type: 'undefined' } ] : [ { type: 'string', value: JSON.stringify( argument ) } ],
		target: { context },
		awaitPromise: true,
		userActivation: true,
	} );
	if ( 'exception' === answer.type ) {
		throw new Error( `${ answer.exceptionDetails.text } in ${ String( what ).slice( 0, 200 ) }` );
	}
	return 'string' === answer.result.type ? JSON.parse( answer.result.value ) : undefined;
}

function page( connection, context ) {
	const all = ( node ) => [ node, ...( node.children ?? [] ).flatMap( all ) ];
	return {
		evaluate: ( what, argument ) => evaluate( connection, context, what, argument ),
		goto: ( url ) => connection.send( 'browsingContext.navigate', { context, url, wait: 'complete' } ),
		reload: () => connection.send( 'browsingContext.reload', { context, wait: 'complete' } ),
		close: () => connection.send( 'browsingContext.close', { context } ),
		prepare: ( script ) => connection.send( 'script.addPreloadScript', { functionDeclaration: String( script ), contexts: [ context ] } ),
		problems: () => connection.problems.get( context ) ?? [],
		/** Documents of all frames, as they are now. */
		frames: async () => all( ( await connection.send( 'browsingContext.getTree', { root: context } ) ).contexts[ 0 ] ).slice( 1 ).map( ( one ) => ( { url: one.url, evaluate: ( what, argument ) => evaluate( connection, one.context, what, argument ) } ) ),
		screenshot: async ( { path } ) => writeFileSync( path, Buffer.from( ( await connection.send( 'browsingContext.captureScreenshot', { context } ) ).data, 'base64' ) ),
	};
}
