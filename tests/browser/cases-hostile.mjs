/**
 * Agent output, names and file contents with markup, control sequences and hidden characters.
 */
import { writeFileSync } from 'node:fs';
import { holds, plugin, read, same, site, soon, test } from './harness.mjs';

const MARKUP = '</textarea><script>window.codeboxTripped=1</script><img src=x onerror="window.codeboxTripped=1"> \u202egnp.exe\u2066 \u001b[31mred\u001b[0m javascript:alert(1)';

/**
 * Returns the CPU time of the longest task of a page, in milliseconds. Wall-clock time would also count the
 * time that other processes take on a busy machine.
 */
function longestTask( trace ) {
	const { traceEvents } = JSON.parse( trace.toString() );
	const pages = new Set( traceEvents.filter( ( event ) => 'thread_name' === event.name && 'CrRendererMain' === event.args.name ).map( ( event ) => `${ event.pid } ${ event.tid }` ) );
	// An event that began before or ended after the trace has no duration.
	return traceEvents.reduce( ( most, event ) => 'RunTask' === event.name && Number.isFinite( event.tdur ) && pages.has( `${ event.pid } ${ event.tid }` ) ? Math.max( most, Math.round( event.tdur / 1000 ) ) : most, 0 );
}

export default async function ( browser, admin ) {
	const { page } = admin;
	let bundle = null;

	await test( 'hostile: the script detector and the content security policy both work (positive control)', async () => {
		await admin.open();
		await page.evaluate( () => {
			document.getElementById( 'wp-codebox-screen' ).insertAdjacentHTML( 'beforeend', '<img src=x onerror="window.codeboxTripped=\'control\'">' );
		} );
		await soon( 'the policy reports an inline handler', () => page.evaluate( () => window.codeboxReports.some( ( report ) => 'script-src-attr' === report.directive ) ) );
		holds( 'the policy reports markup from text', await page.evaluate( () => window.codeboxReports.some( ( report ) => 'require-trusted-types-for' === report.directive ) ) );
		same( undefined, await page.evaluate( () => window.codeboxTripped ), 'the policy blocks the handler' );
		// Control: on a page without the content security policy the same inline handler runs.
		await page.goto( site.url + '/wp-admin/tools.php' );
		await page.evaluate( () => {
			document.body.insertAdjacentHTML( 'beforeend', '<img src=x onerror="window.codeboxTripped=\'control\'">' );
		} );
		await soon( 'without the policy the handler runs', () => page.evaluate( () => 'control' === window.codeboxTripped ) );
	} );

	await test( 'hostile: markup and control sequences in goal and agent output are shown as text', async () => {
		await admin.open( '#/new' );
		await page.getByLabel( 'Goal' ).fill( 'Goal ' + MARKUP );
		await page.getByLabel( 'Slug' ).fill( 'sample' );
		await page.getByLabel( 'Agent (optional)' ).fill( 'hostile' );
		await admin.button( 'Start the task' ).click();
		await page.waitForURL( /#\/runs\/run_/ );
		const run = page.url().split( '#/runs/' )[ 1 ];
		await page.getByText( 'The run ended.' ).waitFor( { timeout: 120000 } );
		// When the run ended before the screen asked for it, the screen loads the output with later requests.
		await soon( 'the output is complete', async () => ( await admin.text( '.wp-codebox-log' ) ).includes( 'The bundle is written.' ) );
		const log = await admin.text( '.wp-codebox-log' );
		for ( const expected of [ '<script>window.codeboxTripped=', '<img src=x onerror=', '</textarea></pre></div><svg onload=', '<a href="javascript:', 'red linked cleared', 'accessU+202E RLOnimdaU+2066 LRI', 'U+200B ZWSP', 'U+0007 BEL', 'U+0008 BS', 'U+E0041', 'not UTF-8: caf' ] ) {
			holds( `shown as text: ${ expected }\n${ log }`, log.includes( expected ) );
		}
		holds( 'no terminal sequence is left', ! /\[31m|\[2J|]0;|]8;/.test( log ) );
		holds( 'no bidirectional control character is on the page', await page.evaluate( () => ! /[\u202a-\u202e\u2066-\u2069\u200b-\u200f]/.test( document.querySelector( '.wp-codebox-screen' ).textContent ) ) );
		holds( 'no control character is in the title', await page.evaluate( () => ! /[\u202a-\u202e\u2066-\u2069\u001b]/.test( document.title ) ) );
		const heading = await admin.text( '.wp-codebox-view h2' );
		holds( `the goal as text: ${ heading }`, heading.includes( '</textarea><script>' ) && heading.includes( 'U+202E RLO' ) );
		same( 0, await page.locator( '#wp-codebox-screen :is(script,img,svg,iframe,textarea), #wp-codebox-screen a[href^=javascript]' ).count(), 'elements created from text' );
		await admin.unharmed( 'output' );
		await admin.accessible( 'hostile output' );
		await admin.picture( 'hostile-run' );
		bundle = { run };
	} );

	await test( 'hostile: text that no view cleaned is cleaned in text nodes and attributes, and the texts of translations stay', async () => {
		await admin.open();
		const made = await page.evaluate( () => {
			const { el } = window.wpCodebox.dom;
			const text = 'a\u001b[31m\u202eb\u2066c\u200bd\u{e0041}e\u009b';
			const element = el( 'p', { title: text }, text, [ text ], el( 'b', {}, text ) );
			const own = '1\u202f000\u00a0\u200f\u200c\u{1f469}\u200d\u{1f4bb}';
			return { shown: element.textContent + element.title, own: el( 'p', {}, own ).textContent === own };
		} );
		holds( `no character that turns or hides text: ${ JSON.stringify( made.shown ) }`, ! /[\u0000-\u001f\u007f-\u009f\u200b\u2028-\u202e\u2060-\u206f\u{e0000}-\u{e0fff}]/u.test( made.shown ) && made.shown.includes( '[U+202E RLO]b' ) );
		holds( 'spaces, joiners and direction marks of translations stay', made.own );
	} );

	await test( 'hostile: markup and hidden characters in names and contents of files are shown as text', async () => {
		await admin.open( '#/bundles/' + bundle.run );
		const files = page.locator( '.wp-codebox-files > li' );
		const count = await files.count();
		holds( `all files are listed: ${ count }`, 9 === count );
		const names = await page.locator( '.wp-codebox-file code' ).allInnerTexts();
		holds( `a name with markup: ${ names }`, names.includes( "inc/<img src=x onerror=window.codeboxTripped='name'>.txt" ) );
		holds( 'a name with bidirectional control characters', names.includes( 'inc/U+202E RLOphp.evilU+2066 LRI.txt' ) );
		const place = '/wordpress/wp-content/plugins/sample/inc/';
		same( [
			`server-configuration:${ place }.user.ini The web server or PHP obeys this file in every request to its directory.`,
			`executable-archive:${ place }<img src=x onerror=window.codeboxTripped='flag'>U+202E RLO.phar PHP can run the code in this archive.`,
			`binary:${ place }bytes.txt The content cannot be read as text.`,
			`binary:${ place }picture.bin The content cannot be read as text.`,
		], await page.locator( '.notice', { hasText: 'Look closer:' } ).locator( 'li' ).allInnerTexts(), 'what the runner flags' );
		for ( let index = 0; index < count; index++ ) {
			await files.nth( index ).getByRole( 'button', { name: 'Show difference' } ).click();
			await soon( `difference ${ index }`, async () => ( await files.nth( index ).locator( '.wp-codebox-diff' ).count() ) === 1 );
		}
		// Checked before more lines are shown: axe takes time for each line, and further lines have the same structure.
		await admin.accessible( 'hostile differences' );
		const difference = ( name ) => page.locator( '.wp-codebox-files > li', { hasText: name } ).locator( '.wp-codebox-diff-added .wp-codebox-diff-text' );
		const texts = ( await difference( 'inc/more.php' ).allInnerTexts() ).join( '\n' );
		for ( const expected of [ "<script>window.codeboxTripped='diff-script'</script>", 'U+001B ESC[31mred', 'accessU+202E RLOnimdaU+2066 LRI', 'U+E0041', 'U+2028 LS', 'U+000D CR' ] ) {
			holds( `shown unchanged: ${ expected }\n${ texts }`, texts.includes( expected ) );
		}
		const bytes = await page.locator( '.wp-codebox-files > li', { hasText: 'bytes.txt' } ).innerText();
		holds( `a binary file is labelled: ${ bytes }`, bytes.includes( 'This file is not text' ) && bytes.includes( 'GIT binary patch' ) );
		const long = page.locator( '.wp-codebox-files > li', { hasText: 'long.txt' } );
		same( 1000, ( await long.locator( '.wp-codebox-diff-added td' ).last().evaluate( ( cell ) => cell.firstChild.textContent ) ).length, 'a long line is shown in parts' );
		await long.getByRole( 'button', { name: 'Show more: 199,000 characters' } ).click();
		await long.getByRole( 'button', { name: 'Show more: 198,000 characters' } ).waitFor();
		const many = page.locator( '.wp-codebox-files > li', { hasText: 'many.txt' } );
		holds( 'many lines are shown in parts', ( await many.locator( 'tr' ).count() ) < 500 );
		await many.getByRole( 'button', { name: /^Show more: 2\d,\d+ lines$/ } ).click();
		await soon( 'more lines are shown on demand', async () => ( await many.locator( 'tr' ).count() ) > 700 );
		holds( 'no bidirectional control character is on the page', await page.evaluate( () => ! /[\u202a-\u202e\u2066-\u2069\u200b-\u200f]/.test( document.querySelector( '.wp-codebox-screen' ).innerText ) ) );
		await admin.unharmed( 'differences' );
		await admin.picture( 'hostile-bundle' );
	} );

	await test( 'hostile: approving a file with a hostile name writes only that file', async () => {
		await page.getByRole( 'checkbox', { name: 'inc/U+202E RLOphp.evilU+2066 LRI.txt' } ).check();
		await admin.button( 'Approve and apply…' ).click();
		const asked = await page.getByRole( 'dialog' ).innerText();
		holds( `the dialog shows the real name: ${ asked }`, asked.includes( 'inc/U+202E RLOphp.evilU+2066 LRI.txt' ) );
		await page.getByRole( 'dialog' ).getByRole( 'button', { name: 'Approve and apply' } ).click();
		await page.getByText( '1 file was handed to the site.' ).waitFor();
		same( 'a turned name\n', read( 'inc/\u202ephp.evil\u2066.txt' ), 'the approved file on disk' );
		holds( 'the other file is unchanged', read( 'inc/more.php' ).includes( "'moore'" ) );
	} );

	await test( 'hostile: markup in reasons, errors and addresses is shown as text', async () => {
		await admin.button( 'Reject…' ).click();
		await page.getByLabel( 'Reason' ).fill( 'Reason ' + MARKUP );
		await page.getByRole( 'dialog' ).getByRole( 'button', { name: 'Reject' } ).click();
		await page.getByText( 'The change was rejected.' ).waitFor();
		holds( 'the reason is shown as text', ( await admin.text( '.wp-codebox-result' ) ).includes( '<img src=x onerror=' ) );
		await admin.unharmed( 'reason' );
		await admin.go( '#/new' );
		await page.getByLabel( 'Goal' ).fill( 'An agent nobody has' );
		await page.getByLabel( 'Slug' ).fill( 'sample' );
		await page.getByLabel( 'Agent (optional)' ).fill( MARKUP );
		await admin.button( 'Start the task' ).click();
		await page.locator( '.wp-codebox-error' ).waitFor();
		const words = await admin.text( '.wp-codebox-error' );
		holds( `the error and its hints are shown as text: ${ words }`, words.includes( '<img src=x' ) && words.includes( 'No task was started.' ) );
		await admin.unharmed( 'error' );
		for ( const address of [ '#/runs/' + encodeURIComponent( '<img src=x onerror=window.codeboxTripped=1>' ), '#/bundles/' + encodeURIComponent( '"><script>window.codeboxTripped=1</script>' ), '#/__proto__', '#/constructor/x', '#/runs/%ff%', '#/runs/..%2f..%2fetc' ] ) {
			await admin.go( address );
			holds( `a view for ${ address }`, ( await page.locator( '.wp-codebox-view > h2' ).count() ) === 1 );
			await admin.unharmed( address );
		}
	} );

	await test( 'hostile: the page stays responsive with five megabytes of agent output', async () => {
		await admin.open();
		const run = await admin.start( 'flood', { goal: 'Flood' } );
		await admin.ended( run );
		await browser.startTracing( page, { categories: [ 'disabled-by-default-devtools.timeline' ] } );
		const began = Date.now();
		await admin.go( '#/runs/' + run );
		await soon( 'the end of the output is reached', async () => ( await admin.text( '.wp-codebox-log' ) ).includes( 'no line end' ) && ( await admin.words() ).includes( 'The bundle is written.' ), 120000 );
		const took = Date.now() - began;
		const longest = longestTask( await browser.stopTracing() );
		const nodes = await page.evaluate( () => document.querySelectorAll( '.wp-codebox-log *' ).length );
		holds( `the number of elements stays low: ${ nodes } elements`, nodes < 20000 );
		holds( `no task blocks the page: ${ longest } ms`, longest > 0 && longest < 2500 );
		holds( `the output is shown within ${ took } ms`, took < 100000 );
		holds( 'the page tells how many lines are not shown', /[\d,]+ earlier lines are not shown here/.test( await admin.words() ) );
		const click = Date.now();
		await page.getByRole( 'link', { name: 'Bundles' } ).click();
		await page.getByRole( 'heading', { name: 'Bundles', exact: true } ).waitFor();
		holds( 'the page can be left quickly', Date.now() - click < 30000 );
		console.log( `     5 MB of output: shown in ${ took } ms, longest task ${ longest } ms of a processor, ${ nodes } elements` );
		await admin.unharmed( 'flood' );
	} );

	await test( 'hostile: the page sends no requests while its browser tab is hidden', async () => {
		await admin.open();
		const run = await admin.start( 'sleep', { goal: 'Unseen' } );
		await admin.open( '#/runs/' + run );
		await soon( 'the run is running', async () => ( await admin.words() ).includes( 'going to sleep' ) );
		let asked = 0;
		const count = ( request ) => {
			asked += request.url().includes( 'list-run-events' ) ? 1 : 0;
		};
		const hide = ( hidden ) => page.evaluate( ( value ) => {
			Object.defineProperty( document, 'hidden', { value, configurable: true } );
			document.dispatchEvent( new Event( 'visibilitychange' ) );
		}, hidden );
		page.on( 'request', count );
		await soon( 'a visible page sends requests', async () => asked > 0 );
		await hide( true );
		await page.waitForTimeout( 1000 );
		asked = 0;
		await page.waitForTimeout( 6000 );
		same( 0, asked, 'requests of a hidden page' );
		await hide( false );
		await soon( 'a page that is visible again sends requests', async () => asked > 0 );
		page.off( 'request', count );
		await admin.ability( 'cancel-run', { run_id: run } );
		await page.getByText( 'The run ended.' ).waitFor( { timeout: 120000 } );
		writeFileSync( plugin + '/sample.php', read( 'sample.php' ).replace( "'hello'", "'helo'" ) );
	} );
}
