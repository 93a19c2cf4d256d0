/** Runner, assertions and the stock Chromium of the engine's cases. */
import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

let passed = 0;
let failed = 0;
let facts = 0;

class Failed extends Error {}

export function holds( what, condition ) {
	facts += 1;
	if ( true !== condition ) {
		throw new Failed( what );
	}
}

export function same( expected, actual, what = 'same' ) {
	holds( `${ what }\n  expected ${ JSON.stringify( expected ) }\n  actual   ${ JSON.stringify( actual ) }`, JSON.stringify( expected ) === JSON.stringify( actual ) );
}

/** Waits for a condition; the limit only decides how long a failing case takes. */
export async function soon( what, condition, milliseconds = 60000 ) {
	const until = Date.now() + milliseconds;
	while ( ! await condition() ) {
		if ( Date.now() > until ) {
			return holds( `${ what } (waited ${ milliseconds } ms)`, false );
		}
		await new Promise( ( resolve ) => setTimeout( resolve, 50 ) );
	}
	return holds( what, true );
}

/** Runs one case. A case that checks nothing fails. */
export async function test( name, body ) {
	if ( ! new RegExp( process.env.ONLY ?? '' ).test( name ) ) {
		return;
	}
	const began = Date.now();
	facts = 0;
	try {
		await body();
		if ( 0 === facts ) {
			throw new Failed( 'the case checks nothing' );
		}
		passed += 1;
		console.log( `ok   ${ name } (${ facts } facts, ${ Date.now() - began } ms)` );
	} catch ( thrown ) {
		failed += 1;
		console.log( `FAIL ${ name }\n  ${ thrown instanceof Failed ? thrown.message : thrown.stack }` );
	}
}

export function summary() {
	console.log( `browser-engine: ${ passed } passed, ${ failed } failed` );
	return 0 === failed && passed > 0 ? 0 : 1;
}

/** The user of a browser: browsers' own sandboxes do not work as root. */
export function account() {
	if ( 0 !== process.getuid() ) {
		return {};
	}
	const user = process.env.CODEBOX_OWNER ?? 'nobody';
	return { uid: Number( execFileSync( 'id', [ '-u', user ] ) ), gid: Number( execFileSync( 'id', [ '-g', user ] ) ) };
}

/** Makes a profile directory, filled by a function, that belongs to that user. */
export function profileFor( name, fill ) {
	const profile = mkdtempSync( join( tmpdir(), `codebox-${ name }-` ) );
	fill( profile );
	const { uid, gid } = account();
	if ( undefined !== uid ) {
		[ '', ...readdirSync( profile, { recursive: true } ) ].forEach( ( one ) => chownSync( join( profile, one ), uid, gid ) );
	}
	return profile;
}

/**
 * Chromium with its stock switches, over CDP. Playwright's own switches turn off the partitioning of third-party
 * storage, and service workers in frames of other sites then fail. Everything outside of this machine goes to
 * the proxy `trap`, which notes it. `settings` are preferences of the profile.
 */
export async function launch( trap, settings = {} ) {
	const profile = profileFor( 'chromium', ( directory ) => {
		mkdirSync( join( directory, 'Default' ) );
		writeFileSync( join( directory, 'Default/Preferences' ), JSON.stringify( settings ) );
	} );
	const child = spawn( process.env.CODEBOX_BROWSER ?? '/usr/bin/chromium', [
		'--headless=new', '--remote-debugging-port=0', `--user-data-dir=${ profile }`, '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-gpu', '--disable-dev-shm-usage', '--window-size=1280,900',
		`--proxy-server=http://127.0.0.1:${ trap }`, '--proxy-bypass-list=127.0.0.1;localhost', 'about:blank',
	], { ...account(), env: { PATH: '/usr/bin:/bin', HOME: profile, LANG: 'C.UTF-8' }, stdio: [ 'ignore', 'ignore', 'ignore' ] } );
	const file = join( profile, 'DevToolsActivePort' );
	const until = Date.now() + 60000;
	while ( ! existsSync( file ) || ! readFileSync( file, 'utf8' ).includes( '\n' ) ) {
		if ( Date.now() > until || null !== child.exitCode ) {
			throw new Error( 'Chromium did not start' );
		}
		await new Promise( ( resolve ) => setTimeout( resolve, 50 ) );
	}
	const [ port, path ] = readFileSync( file, 'utf8' ).split( '\n' );
	const browser = await chromium.connectOverCDP( `ws://127.0.0.1:${ port }${ path }`, { noDefaults: true } );
	return {
		browser,
		pid: child.pid,
		close: async () => {
			const ended = new Promise( ( resolve ) => child.once( 'exit', resolve ) );
			await browser.close().catch( () => {} );
			child.kill( 'SIGTERM' );
			await ended;
			rmSync( profile, { recursive: true, force: true, maxRetries: 5 } );
		},
	};
}
