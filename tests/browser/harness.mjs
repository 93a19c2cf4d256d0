/**
 * Test runner, assertions and browser windows of the suite.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const axe = readFileSync( createRequire( import.meta.url ).resolve( 'axe-core/axe.min.js' ), 'utf8' );

export const site = { url: process.env.SITE_URL, path: process.env.SITE_PATH, password: process.env.SITE_PASSWORD, state: process.env.STATE };
export const plugin = site.path + '/wp-content/plugins/sample';
export const read = ( file ) => readFileSync( plugin + '/' + file, 'utf8' );

/** Sets the options of the site's test plugin for the following requests; without an argument resets them. */
export const toggle = ( settings = {} ) => writeFileSync( process.env.TMPDIR + '/toggles.json', JSON.stringify( settings ) );

let passed = 0;
let failed = 0;
let facts = 0;
const only = process.env.ONLY || '';

export class Failed extends Error {}

export function holds( what, condition ) {
	facts += 1;
	if ( true !== condition ) {
		throw new Failed( what );
	}
}

export function same( expected, actual, what = 'same' ) {
	holds( `${ what }\n  expected ${ JSON.stringify( expected ) }\n  actual   ${ JSON.stringify( actual ) }`, JSON.stringify( expected ) === JSON.stringify( actual ) );
}

/** Waits until a condition holds. */
export async function soon( what, condition, milliseconds = 60000 ) {
	const until = Date.now() + milliseconds;
	for ( ;; ) {
		const began = Date.now();
		if ( await condition() ) {
			return holds( what, true );
		}
		const ended = Date.now();
		if ( ended > until ) {
			return holds( `${ what } (waited ${ milliseconds } ms)`, false );
		}
		// A condition that loads WordPress takes processor time from the awaited run, so a slow one is checked less often.
		await new Promise( ( resolve ) => setTimeout( resolve, Math.min( 1000, Math.max( 100, 3 * ( ended - began ) ) ) ) );
	}
}

/** Sends SIGALRM to the agent `fix` of this suite. The agent is a process of this host and of this user, also in a sandbox. */
export async function wake() {
	const wanted = `agent.php\0fix\0${ process.env.AGENT_TOKEN }\0`;
	const waits = ( pid ) => {
		try {
			// Waits until the agent catches SIGALRM: signal 14, so bit 13 of the mask. (SIGUSR1 would not do: PHP itself catches it.)
			const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec( readFileSync( `/proc/${ pid }/status`, 'utf8' ) )[ 1 ];
			return readFileSync( `/proc/${ pid }/cmdline`, 'utf8' ).endsWith( wanted ) && 0 !== ( parseInt( caught.slice( -4 ), 16 ) & 0x2000 );
		} catch {
			return false;
		}
	};
	await soon( 'the agent catches SIGALRM', async () => {
		const found = readdirSync( '/proc' ).filter( ( name ) => /^\d+$/.test( name ) && waits( name ) );
		found.forEach( ( pid ) => process.kill( Number( pid ), 'SIGALRM' ) );
		return 1 === found.length;
	} );
}

/** Runs one case. Each case must assert something; a failing case does not stop the others. */
export async function test( name, body ) {
	if ( only && ! name.includes( only ) ) {
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
		for ( const user of users ) {
			await user.page.screenshot( { path: `${ process.env.SCREENS }/failed-${ failed }-${ user.name }.png` } ).catch( () => {} );
		}
	}
}

export function summary() {
	console.log( `browser: ${ passed } passed, ${ failed } failed` );
	return 0 === failed && passed > 0 ? 0 : 1;
}

export async function launch() {
	return chromium.launch( { executablePath: process.env.BROWSER, headless: true, chromiumSandbox: true, args: [ '--disable-dev-shm-usage', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1' ] } );
}

const users = [];
let opened = 0;

/** A logged-in user in a browser context that detects scripts injected by agent output or file contents. */
export class User {
	static async login( browser, name, settings = {}, url = site.url ) {
		const user = new User();
		user.name = name;
		user.url = url;
		// Without motion, wp-admin asks for no view transition between its pages. On a busy machine Chromium
		// gives one up and reports that as an error of the page, which has no part in it.
		user.context = await browser.newContext( { viewport: { width: 1280, height: 900 }, acceptDownloads: true, locale: 'en-US', reducedMotion: 'reduce', ...settings } );
		user.page = await user.context.newPage();
		user.errors = [];
		user.foreign = [];
		user.page.setDefaultTimeout( 60000 );
		user.page.on( 'pageerror', ( error ) => user.errors.push( String( error ) ) );
		user.page.on( 'dialog', ( dialog ) => {
			user.errors.push( 'a page dialog: ' + dialog.message() );
			dialog.dismiss();
		} );
		user.page.on( 'request', ( request ) => {
			if ( ! request.url().startsWith( url ) && ! /^(data|blob|about):/.test( request.url() ) ) {
				user.foreign.push( request.url() );
			}
		} );
		// Hostile scripts set `codeboxTripped`; violations of the content security policy are collected in `codeboxReports`.
		await user.page.addInitScript( () => {
			window.codeboxReports = [];
			document.addEventListener( 'securitypolicyviolation', ( event ) => {
				window.codeboxReports.push( { directive: event.effectiveDirective, source: event.sourceFile, line: event.lineNumber, sample: event.sample, blocked: event.blockedURI } );
			} );
		} );
		// WordPress would open the dashboard, whose widgets load many scripts.
		await user.page.goto( url + '/wp-login.php?redirect_to=' + encodeURIComponent( url + '/wp-admin/tools.php' ) );
		await user.page.fill( '#user_login', name );
		await user.page.fill( '#user_pass', site.password );
		await user.page.click( '#wp-submit' );
		await user.page.waitForURL( url + '/wp-admin/tools.php' );
		users.push( user );
		return user;
	}

	/** Loads a view of the admin screen and waits until it is shown. */
	async open( view = '#/runs' ) {
		// The address differs each time: a change of the fragment alone would not reload the page.
		opened += 1;
		await this.page.goto( `${ this.url }/wp-admin/tools.php?page=wp-codebox&opened=${ opened }${ view }` );
		await this.settled();
	}

	/** Changes to a view of the admin screen by the URL fragment, without loading the page again. */
	async go( view ) {
		await this.page.evaluate( ( hash ) => {
			window.location.hash = hash;
		}, view );
		await this.settled();
	}

	async settled() {
		await this.page.waitForSelector( '.wp-codebox-view > h2' );
		await this.page.waitForFunction( () => ! document.querySelector( '.wp-codebox-view > .wp-codebox-waiting' ) );
	}

	/** Sends a plain REST request as this user; returns status and body. */
	async rest( ability ) {
		return this.page.evaluate( async ( name ) => {
			const nonce = await ( await fetch( '/wp-admin/admin-ajax.php?action=rest-nonce' ) ).text();
			const reply = await fetch( `/?rest_route=/wp-abilities/v1/abilities/wp-codebox/${ name }/run`, { headers: { 'X-WP-Nonce': nonce } } );
			return { status: reply.status, body: await reply.json() };
		}, ability );
	}

	/** Calls an ability over REST like the page does. */
	async ability( name, input ) {
		return this.page.evaluate( async ( [ ability, given ] ) => window.wpCodebox.api.call( ability, given ), [ name, input ] );
	}

	/** Starts a task over REST; returns its run. */
	async start( agent, more = {} ) {
		const handle = await this.ability( 'run-agent-task', { goal: `Task for ${ agent }`, plugin: 'sample', agent, wait: false, ...more } );
		return handle.run_id;
	}

	/** Waits until a run has ended; returns it. */
	async ended( run ) {
		let view;
		await soon( `the run ${ run } ends`, async () => {
			const answer = await this.ability( 'get-run', { run_id: run } );
			view = answer.run ?? answer;
			return 'ended' === view.status;
		}, 120000 );
		return view;
	}

	/** Runs an agent to its end; returns the run and its bundle. */
	async bundle( agent, more = {} ) {
		const run = await this.start( agent, more );
		const view = await this.ended( run );
		holds( `the run of ${ agent } left a bundle`, Boolean( view.bundle_id ) );
		return { run, id: view.bundle_id };
	}

	text( selector ) {
		return this.page.locator( selector ).first().innerText();
	}

	/** Visible text of the screen. */
	async words() {
		return this.page.locator( '.wp-codebox-screen' ).innerText();
	}

	button( name ) {
		return this.page.getByRole( 'button', { name, exact: true } );
	}

	/** Checks that no injected script ran, and that the page had no policy violation, error or request to another origin. */
	async unharmed( what ) {
		same( undefined, await this.page.evaluate( () => window.codeboxTripped ), `${ what }: a script from data ran` );
		const reports = await this.page.evaluate( () => window.codeboxReports );
		same( [], reports.filter( ( report ) => report.source.includes( '/wp-codebox/' ) || 'script-src-attr' === report.directive && /codeboxTripped/.test( report.sample ) ), `${ what }: violations of the content security policy` );
		same( [], this.errors, `${ what }: errors on the page` );
		same( [], this.foreign, `${ what }: requests to other origins` );
	}

	/** Checks that axe reports no serious or critical problem in the screen. */
	async accessible( what ) {
		if ( ! await this.page.evaluate( () => Boolean( window.axe ) ) ) {
			// evaluate() uses the debugger protocol, to which the page's content security policy does not apply.
			await this.page.evaluate( axe );
		}
		const found = await this.page.evaluate( async () => {
			const answer = await window.axe.run( '.wp-codebox-screen', { resultTypes: [ 'violations' ], selectors: false } );
			return answer.violations.filter( ( one ) => [ 'serious', 'critical' ].includes( one.impact ) ).map( ( one ) => one.id + ': ' + one.nodes.map( ( node ) => node.html.slice( 0, 160 ) + ' ' + node.failureSummary ).slice( 0, 3 ).join( ' | ' ) );
		} );
		same( [], found, `axe: ${ what }` );
	}

	/** Checks that at 1280 and 390 px no element is wider than the window; takes screenshots if wanted. */
	async picture( name ) {
		for ( const width of [ 1280, 390 ] ) {
			await this.page.setViewportSize( { width, height: 1280 === width ? 900 : 844 } );
			const wide = await this.page.evaluate( () => document.querySelector( '.wp-codebox-screen' ).scrollWidth - document.querySelector( '.wp-codebox-screen' ).clientWidth );
			holds( `${ name } at ${ width } px: no element is wider than the window (${ wide } px)`, wide <= 1 );
			if ( process.env.SHOTS ) {
				await this.page.screenshot( { path: `${ process.env.SCREENS }/${ name }-${ width }.png`, fullPage: true } );
			}
		}
		await this.page.setViewportSize( { width: 1280, height: 900 } );
	}
}
