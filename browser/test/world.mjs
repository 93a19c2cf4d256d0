/** What the cases share: servers, the browser and ways to open a sandbox. */
import { launch } from './harness.mjs';
import { assets, serve, source, trap } from './server.mjs';

/** Chromium's own services, which have nothing to do with a page. */
const own = /(^|\.)(google|googleapis|gstatic|gvt1)\.com/;

export async function world() {
	const proxy = await trap();
	const site = await serve();
	const chrome = await launch( proxy.port );
	const context = chrome.browser.contexts()[ 0 ];
	const origin = `http://127.0.0.1:${ site.port }`;
	const opened = [];
	return {
		site, chrome, context, origin, proxy,
		foreign: () => proxy.asked.filter( ( url ) => ! own.test( url.includes( '://' ) ? new URL( url ).hostname : url.split( ':' )[ 0 ] ) ),
		/** Clears the requests that the proxy recorded during a control. */
		forget: () => {
			proxy.asked.length = 0;
		},
		/** Opens a parent page. */
		async page( address = origin, prepare = undefined ) {
			const page = await context.newPage();
			opened.push( page );
			page.problems = [];
			page.on( 'console', ( message ) => 'error' === message.type() && page.problems.push( message.text() ) );
			page.setDefaultTimeout( 120000 );
			if ( prepare ) {
				await page.addInitScript( prepare );
			}
			await page.goto( `${ address }/test/page.html` );
			return page;
		},
		async close() {
			await chrome.close();
			await site.close();
			await proxy.close();
		},
		async closePages() {
			await Promise.all( opened.splice( 0 ).map( ( page ) => page.close().catch( () => {} ) ) );
		},
	};
}

/** Starts a sandbox in a parent page. `blueprint` adds to the usual one. */
export function start( page, origin, { blueprint = {}, codebox = {}, scope = 'one', remoteUrl = `${ assets }remote.html` } = {} ) {
	return page.evaluate( ( [ base, options ] ) => window.start( base, options ), [ assets, { remoteUrl, scope, blueprint: { steps: [ { step: 'activatePlugin', pluginPath: 'sample/sample.php' } ], ...blueprint, codebox: source( origin, codebox ) } } ] );
}

/** The frame that shows the site. */
export function siteFrame( page, scope = 'one' ) {
	return page.frames().find( ( frame ) => frame.url().includes( `/site/${ scope }/` ) );
}

/** Goes to a path and waits until its document is shown. */
export async function go( page, path, scope = 'one' ) {
	await page.evaluate( ( to ) => window.client.goTo( to ), path );
	return siteFrame( page, scope );
}

/** Calls a function of the client. */
export const call = ( page, method, ...args ) => page.evaluate( async ( [ name, given ] ) => {
	try {
		const value = await window.client[ name ]( ...given );
		return { value };
	} catch ( thrown ) {
		return { code: thrown.code, message: thrown.message };
	}
}, [ method, args ] );

/** Runs a command and collects its output. */
export const exec = ( page, command, args = [], options = {} ) => page.evaluate( async ( [ name, given, more ] ) => {
	const outputs = [];
	try {
		const { exitCode } = await window.client.exec( name, given, { ...more, onOutput: ( output ) => outputs.push( output ) } );
		const text = ( stream ) => outputs.filter( ( one ) => one.stream === stream ).map( ( one ) => one.data ).join( '' );
		return { exitCode, stdout: text( 'stdout' ), stderr: text( 'stderr' ), pieces: outputs.length, ids: [ ...new Set( outputs.map( ( one ) => one.executionId ) ) ] };
	} catch ( thrown ) {
		return { code: thrown.code, message: thrown.message, hint: thrown.hint };
	}
}, [ command, args, options ] );
