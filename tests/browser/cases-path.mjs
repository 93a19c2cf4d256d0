/**
 * The main workflow in the admin screen: start a task, read its output, review the change, apply it.
 */
import { writeFileSync } from 'node:fs';
import { holds, plugin, read, same, soon, test, toggle, wake } from './harness.mjs';

export default async function ( browser, admin ) {
	const { page } = admin;
	let run = '';

	await test( 'path: a started task shows its output live and then its result', async () => {
		toggle( { palette: true } );
		await admin.open( '#/new' );
		toggle();
		holds( 'the command palette of WordPress is on the page', await page.evaluate( () => Boolean( window.wp.commands ) ) );
		same( 'New task', await admin.text( '.wp-codebox-view h2' ), 'heading' );
		await admin.accessible( 'the form' );
		await admin.picture( 'new-task' );
		await page.getByLabel( 'Goal' ).fill( 'Spell the greeting right' );
		await page.getByLabel( 'Slug' ).fill( 'sample' );
		await soon( 'the installed plugins are offered', async () => ( await page.locator( 'datalist option[value=sample]' ).count() ) === 1 );
		await page.getByLabel( 'Checks (optional)' ).fill( 'php tools/check.php' );
		await admin.button( 'Start the task' ).click();
		await page.waitForURL( /#\/runs\/run_/ );
		run = page.url().split( '#/runs/' )[ 1 ];
		await page.waitForSelector( '.wp-codebox-log' );
		await soon( 'output of the agent is shown', async () => ( await admin.text( '.wp-codebox-log' ) ).includes( 'looking for spelling mistakes' ), 90000 ); // The first run of a host builds a WordPress template.
		const early = await admin.text( '.wp-codebox-log' );
		holds( 'the output was shown before the run ended', ! early.includes( 'removed: inc/old.php' ) );
		holds( 'a running task has a cancel button', await admin.button( 'Cancel the run' ).isVisible() );
		await admin.accessible( 'a live run' );
		await wake();
		await page.getByText( 'The run ended.' ).waitFor( { timeout: 120000 } );
		const log = await admin.text( '.wp-codebox-log' );
		holds( `the whole output is shown: ${ log }`, log.includes( 'removed: inc/old.php' ) && log.includes( 'one warning' ) && ! log.includes( '[33m' ) && log.includes( 'hello' ) );
		holds( 'the page tells that the site is unchanged', ( await admin.words() ).includes( 'Nothing on this site was changed by it.' ) );
		same( 'helo', /'(.*)'/.exec( read( 'sample.php' ) )[ 1 ], 'the file on disk' );
		holds( 'an ended run has no cancel button', 0 === await admin.button( 'Cancel the run' ).count() );
		await admin.accessible( 'an ended run' );
		await admin.picture( 'run' );
		await admin.unharmed( 'run' );
	} );

	await test( 'path: after the end of the run the page sends no requests', async () => {
		let asked = 0;
		const count = ( request ) => {
			asked += request.url().includes( 'list-run-events' ) ? 1 : 0;
		};
		page.on( 'request', count );
		await page.waitForTimeout( 2500 );
		same( 0, asked, 'requests after the end' );
		await page.reload();
		await page.getByText( 'The run ended.' ).waitFor();
		await soon( 'the output of an ended run is shown', async () => asked > 0 );
		page.off( 'request', count );
	} );

	await test( 'path: the summary of a run is shown in the language of the screen', async () => {
		const said = () => page.evaluate( async ( id ) => {
			const { run: row } = await window.wpCodebox.api.call( 'get-run', { run_id: id } );
			return [ row.summary, window.wpCodebox.text.summary( row ) ];
		}, run );
		const [ runner, screen ] = await said();
		holds( `the summary of the runner: ${ runner }`, runner.startsWith( 'The agent succeeded (' ) );
		same( runner, screen, 'the summary without a translation' );
		const sentences = await page.evaluate( ( rows ) => rows.map( window.wpCodebox.text.summary ), [
			{ summary_detail: { code: 'agent_succeeded', args: { added: 0, modified: 1, deleted: 0 } } },
			{ summaryDetail: { code: 'no_change', args: { added: 0, modified: 0, deleted: 0 } } },
			{ summary_detail: { code: 'no_change', args: { added: 0, modified: 0, deleted: 0, checks_total: 1, checks_passed: 1 } } },
			{ summary_detail: { code: 'timed_out', args: { added: 0, modified: 1, deleted: 0, checks_total: 2, checks_passed: 1, error: 'wp_codebox_run_timeout', reason: 'the time was up, 100%s' } } },
			{ summary_detail: { code: 'failed', args: { reason: 'why', supervisor_died: true } } },
			{ summary: 'A later runner says this.', summary_detail: { code: 'of_a_later_runner' } },
			{ summary: 'An earlier one this.' },
			{},
		] );
		same( [
			'The agent succeeded (1 file changed: 0 added, 1 modified, 0 deleted).',
			'The agent succeeded and changed no file.',
			'The agent succeeded and changed no file (no file changed; 1 of 1 check passed).',
			'The run timed out: the time was up, 100%s (1 file changed: 0 added, 1 modified, 0 deleted; 1 of 2 checks passed).',
			'The run failed: why (the supervisor died after it had written the bundle)',
			'A later runner says this.',
			'An earlier one this.',
			'',
		], sentences, 'the sentences of the runner' );
		await page.evaluate( () => window.wp.i18n.setLocaleData( { 'The agent succeeded': [ 'Es ging gut' ] }, 'codebox' ) );
		same( runner.replace( 'The agent succeeded', 'Es ging gut' ), ( await said() )[ 1 ], 'the summary with a translation' );
		await page.evaluate( () => window.wp.i18n.setLocaleData( { 'The agent succeeded': [ 'The agent succeeded' ] }, 'codebox' ) );
	} );

	await test( 'path: the bundle page shows the added and removed lines of each file', async () => {
		await page.getByRole( 'link', { name: 'Review the change' } ).click();
		await page.getByRole( 'heading', { name: '3 changed files' } ).waitFor();
		const words = await admin.words();
		for ( const expected of [ 'every file matches the manifest', 'signed by this host', 'full', 'passed', 'php tools/check.php', 'The run changed nothing on this site.' ] ) {
			holds( `the bundle page shows: ${ expected }`, words.includes( expected ) );
		}
		const row = page.locator( '.wp-codebox-files > li', { hasText: 'sample.php' } );
		const toggle = row.getByRole( 'button', { name: 'Show difference' } );
		same( 'false', await toggle.getAttribute( 'aria-expanded' ), 'the difference is closed at first' );
		await toggle.click();
		await row.locator( '.wp-codebox-diff' ).waitFor();
		same( 'true', await toggle.getAttribute( 'aria-expanded' ), 'open' );
		same( [ "\treturn 'hello';" ], await row.locator( '.wp-codebox-diff-added .wp-codebox-diff-text' ).allTextContents(), 'added lines' );
		same( [ "\treturn 'helo';" ], await row.locator( '.wp-codebox-diff-removed .wp-codebox-diff-text' ).allTextContents(), 'removed lines' );
		same( [ 'added+' ], await row.locator( '.wp-codebox-diff-added .wp-codebox-diff-sign' ).allTextContents(), 'added lines have a sign besides the colour' );
		await admin.accessible( 'a bundle with an open difference' );
		await admin.picture( 'bundle' );
	} );

	await test( 'path: approving one of three files writes only that file', async () => {
		same( 0, await page.locator( '.wp-codebox-files input:checked' ).count(), 'no file is checked at first' );
		await admin.button( 'Approve and apply…' ).click();
		await page.getByText( 'Choose at least one file.' ).waitFor();
		same( 0, await page.locator( 'dialog' ).count(), 'no dialog opens without a checked file' );
		await page.getByRole( 'checkbox', { name: 'sample.php' } ).check();
		await admin.button( 'Approve and apply…' ).click();
		const dialog = page.getByRole( 'dialog' );
		await dialog.waitFor();
		const asked = await dialog.innerText();
		const manifest = ( await admin.ability( 'inspect-artifact', { artifact_id: run } ) ).manifest_sha256;
		holds( 'the dialog names the file', asked.includes( '/wordpress/wp-content/plugins/sample/sample.php' ) && ! asked.includes( 'more.php' ) );
		holds( 'the dialog names the digest', asked.includes( manifest ) );
		await admin.accessible( 'the confirmation' );
		await admin.picture( 'confirm' );
		await page.keyboard.press( 'Escape' );
		await soon( 'Escape closes the dialog', async () => 0 === await page.locator( 'dialog' ).count() );
		await soon( 'the focus returns to the button', async () => 'Approve and apply…' === await page.evaluate( () => document.activeElement.textContent ) );
		holds( 'no file was written', read( 'sample.php' ).includes( "'helo'" ) );

		let sent = null;
		const watch = ( request ) => {
			if ( /review-artifact|apply-approved-artifact/.test( request.url() ) ) {
				sent = request.postDataJSON();
			}
		};
		page.on( 'request', watch );
		await admin.button( 'Approve and apply…' ).click();
		await page.getByRole( 'dialog' ).getByRole( 'button', { name: 'Approve and apply' } ).click();
		await page.getByText( '1 file was handed to the site.' ).waitFor();
		page.off( 'request', watch );
		same( manifest, sent.input.manifest_sha256, 'the decision is bound to the manifest' );
		await soon( 'the focus is at the result', () => page.evaluate( () => document.activeElement.classList.contains( 'notice-success' ) ) );
		holds( 'the adapter is named', ( await admin.words() ).includes( 'example-host/git-apply' ) );
		same( "<?php\n/**\n * Plugin Name: Sample\n * Description: What the browser suite lets agents work on.\n * Version:     1.0\n * License:     GPL-2.0-or-later\n */\n\nfunction sample_greeting() {\n\treturn 'hello';\n}\n", read( 'sample.php' ), 'the approved file, byte for byte' );
		holds( 'the other files are unchanged', read( 'inc/more.php' ).includes( "'moore'" ) && read( 'inc/old.php' ).includes( 'Nobody' ) );
		await admin.accessible( 'an applied change' );
		await admin.picture( 'applied' );
		await admin.unharmed( 'apply' );
	} );

	await test( 'path: the lists show the run and its bundle', async () => {
		await admin.go( '#/runs' );
		same( 'Runs', await admin.text( '.wp-codebox-view h2' ), 'heading' );
		await page.getByRole( 'link', { name: 'Spell the greeting right' } ).waitFor();
		await soon( 'the focus is at the heading of the new view', () => page.evaluate( () => 'H2' === document.activeElement.tagName ) );
		holds( 'state and outcome are shown as words', /ended\s+succeeded/.test( await page.locator( '.wp-codebox-table tbody tr', { hasText: 'Spell the greeting right' } ).first().innerText() ) );
		await admin.accessible( 'the list of runs' );
		await admin.picture( 'runs' );
		await admin.go( '#/bundles' );
		await page.getByRole( 'heading', { name: 'Bundles' } ).waitFor();
		same( 1, await page.locator( '.wp-codebox-table tbody tr' ).count(), 'one bundle' );
		await admin.accessible( 'the list of bundles' );
		await admin.picture( 'bundles' );
	} );

	await test( 'path: a running task can be cancelled on the screen', async () => {
		const id = await admin.start( 'sleep', { goal: 'Sleep for long' } );
		await admin.go( '#/runs' );
		await page.getByRole( 'link', { name: 'Sleep for long' } ).waitFor();
		same( 'Sleep for long', await admin.text( '.wp-codebox-table tbody tr a' ), 'a running task is listed first' );
		await page.getByRole( 'link', { name: 'Sleep for long' } ).click();
		await soon( 'the run is running', async () => ( await admin.words() ).includes( 'going to sleep' ) );
		await admin.button( 'Cancel the run' ).click();
		await admin.accessible( 'the question' );
		await page.getByRole( 'dialog' ).getByRole( 'button', { name: 'Back' } ).click();
		await soon( 'the focus returns to the button', async () => 'Cancel the run' === await page.evaluate( () => document.activeElement.textContent ) );
		await admin.button( 'Cancel the run' ).click();
		await page.getByRole( 'dialog' ).getByRole( 'button', { name: 'Cancel the run' } ).click();
		await page.getByText( 'The run ended.' ).waitFor( { timeout: 120000 } );
		same( 'cancelled', ( await admin.ability( 'get-run', { run_id: id } ) ).run.outcome, 'outcome' );
		holds( 'the page shows the outcome', ( await admin.text( '.wp-codebox-facts' ) ).includes( 'cancelled' ) );
	} );

	await test( 'path: a task can be started, reviewed and approved with the keyboard alone', async () => {
		const typed = 'Only keys';
		await admin.open( '#/runs' );
		// Presses Tab until the focused element has this name.
		const reach = async ( wanted, most = 60 ) => {
			for ( let step = 0; step < most; step++ ) {
				const name = await page.evaluate( () => {
					const element = document.activeElement;
					return ( element.labels && element.labels[ 0 ] ? element.labels[ 0 ].textContent : element.textContent ).trim();
				} );
				if ( name === wanted ) {
					return true;
				}
				await page.keyboard.press( 'Tab' );
			}
			return false;
		};
		await page.locator( '#wp-codebox-screen' ).evaluate( ( root ) => {
			root.querySelector( 'nav a' ).focus();
		} );
		holds( 'the tab New task is reached', await reach( 'New task' ) );
		await page.keyboard.press( 'Enter' );
		await page.getByRole( 'heading', { name: 'New task' } ).waitFor();
		await admin.settled();
		holds( 'the field Goal is reached', await reach( 'Goal' ) );
		await page.keyboard.type( typed );
		holds( 'the field Slug is reached', await reach( 'Slug' ) );
		await page.keyboard.type( 'sample' );
		holds( 'the field Agent is reached', await reach( 'Agent (optional)' ) );
		await page.keyboard.type( 'quick' );
		holds( 'the button is reached', await reach( 'Start the task' ) );
		await page.keyboard.press( 'Enter' );
		await page.getByText( 'The run ended.' ).waitFor( { timeout: 120000 } );
		await page.getByRole( 'link', { name: 'Review the change' } ).waitFor();
		holds( 'the log is reached', await reach( 'Review the change' ) );
		await page.keyboard.press( 'Enter' );
		await page.getByRole( 'heading', { name: /changed file/ } ).waitFor();
		holds( 'a file is reached', await reach( 'inc/more.php' ) );
		await page.keyboard.press( 'Space' );
		holds( 'its difference is reached', await reach( 'Show difference' ) );
		await page.keyboard.press( 'Enter' );
		await page.locator( '.wp-codebox-diff' ).first().waitFor();
		holds( 'the decision is reached', await reach( 'Approve and apply…' ) );
		await page.keyboard.press( 'Enter' );
		await page.getByRole( 'dialog' ).waitFor();
		holds( 'the confirmation is reached', await reach( 'Approve and apply' ) );
		holds( 'the focus is inside the dialog', await page.evaluate( () => Boolean( document.activeElement.closest( 'dialog' ) ) ) );
		await page.keyboard.press( 'Enter' );
		await page.getByText( '1 file was handed to the site.' ).waitFor();
		same( "<?php\n\nfunction sample_more() {\n\treturn 'more';\n}\n", read( 'inc/more.php' ), 'the file on disk' );
		writeFileSync( plugin + '/inc/more.php', "<?php\n\nfunction sample_more() {\n\treturn 'moore';\n}\n" );
		writeFileSync( plugin + '/sample.php', read( 'sample.php' ).replace( "'hello'", "'helo'" ) );
	} );
}
