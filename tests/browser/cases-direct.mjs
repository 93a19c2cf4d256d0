/**
 * Direct apply in the admin screen: the screen says what will write the files; one of two is applied, shows on the site, and is reverted.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { holds, plugin, read, same, site, soon, test, toggle } from './harness.mjs';

const CONFIRM = 'I have read these files and confirm them as well.';

const greeting = async () => /<p id="sample-greeting">(.*?)<\/p>/.exec( await ( await fetch( site.url ) ).text() )?.[ 1 ];

export default async function ( browser, admin ) {
	const { page } = admin;
	const original = read( 'sample.php' );
	const dialog = page.getByRole( 'dialog' );
	const state = () => page.locator( '.wp-codebox-facts > div', { hasText: /^State/ } ).locator( 'dd' ).innerText();
	const events = () => page.locator( '.wp-codebox-table', { has: page.locator( 'caption', { hasText: 'Decisions' } ) } ).locator( 'tbody tr td:nth-of-type(1)' ).allInnerTexts();
	const buttons = () => page.locator( '.wp-codebox-view .wp-codebox-buttons button' ).allInnerTexts();
	const restored = () => writeFileSync( plugin + '/sample.php', original );
	let run = '';

	await test( 'direct: while nobody applies, the page says how to change that and offers no approval', async () => {
		toggle( { apply: 'none' } );
		await admin.open( '#/new' );
		await page.getByLabel( 'Goal' ).fill( 'Spell it right' );
		await page.getByLabel( 'Slug' ).fill( 'sample' );
		await page.getByLabel( 'Agent (optional)' ).fill( 'quick' );
		await admin.button( 'Start the task' ).click();
		await page.getByText( 'The run ended.' ).waitFor( { timeout: 120000 } );
		run = page.url().split( '#/runs/' )[ 1 ];
		await page.getByRole( 'link', { name: 'Review the change' } ).click();
		await page.getByText( 'Nothing on this site applies approved files yet.' ).waitFor();
		same( [ 0, 0 ], [ await admin.button( 'Approve and apply…' ).count(), await page.locator( '.wp-codebox-files input' ).count() ], 'approval button and check boxes' );
		same( [ 'open', 'helo' ], [ await state(), await greeting() ], 'state and site' );
		holds( 'the history is empty', ( await admin.words() ).includes( 'No record of a decision about this bundle was found.' ) );
		await admin.accessible( 'a bundle that nobody applies' );
		await admin.picture( 'direct-none' );
		await page.getByRole( 'link', { name: 'Turn on direct apply in the settings of Codebox' } ).click();
		await page.getByLabel( /Write approved files into this site/ ).waitFor();
	} );

	await test( 'direct: one of two files is applied and seen on the site; state, buttons and history follow, after a reload too', async () => {
		toggle( { apply: 'direct' } );
		await admin.open( '#/bundles/' + run );
		holds( 'it is said who applies', ( await admin.words() ).includes( 'Codebox writes the approved files into this site: all of them or none.' ) );
		same( 0, await admin.button( 'Take back…' ).count(), 'nothing can be taken back' );
		await page.getByRole( 'checkbox', { name: 'sample.php' } ).check();
		await admin.button( 'Approve and apply…' ).click();
		await dialog.waitFor();
		holds( 'the dialog says who writes', ( await dialog.innerText() ).includes( 'Codebox writes these files' ) );
		await admin.accessible( 'the approval' );
		await admin.picture( 'direct-dialog' );
		await dialog.getByRole( 'button', { name: 'Approve and apply' } ).click();
		await page.getByText( '1 file was written.' ).first().waitFor();
		await soon( 'the focus is at the result', () => page.evaluate( () => document.activeElement.classList.contains( 'notice-success' ) ) );
		same( [ original.replace( 'helo', 'hello' ), true ], [ read( 'sample.php' ), read( 'inc/more.php' ).includes( 'moore' ) ], 'files' );
		await soon( 'the site is changed', async () => 'hello' === await greeting() );
		const followed = async ( when ) => {
			await soon( `the state follows ${ when }`, async () => 'applied in part' === await state() );
			same( [ 'applied' ], await events(), `history ${ when }` );
			same( [ 'Choose all', 'Approve and apply…', 'Take back…', 'Reject…', 'Ask for changes…', 'Download', 'Discard…' ], await buttons(), `buttons ${ when }` );
			same( [ 'inc/more.php' ], await page.locator( '.wp-codebox-files input + label' ).allInnerTexts(), `files that can still be approved ${ when }` );
		};
		await followed( 'at once' );
		await admin.accessible( 'a bundle applied in part' );
		await admin.picture( 'direct-applied' );
		await admin.open( '#/bundles/' + run );
		await followed( 'after a reload' );
		await admin.go( '#/bundles' );
		await page.getByRole( 'heading', { name: 'Bundles', exact: true } ).waitFor();
		same( 'applied in part', await page.locator( `tr:has(a[href="#/bundles/${ run }"]) td[data-column=State]` ).innerText(), 'state in the list' );
		await admin.accessible( 'the list with states' );
		await admin.picture( 'direct-list' );
	} );

	await test( 'direct: a bundle is taken back after a confirmation, and the site is as before', async () => {
		await admin.open( '#/bundles/' + run );
		await admin.button( 'Take back…' ).click();
		holds( 'the dialog names the file', ( await dialog.innerText() ).includes( 'sample/sample.php' ) );
		await admin.accessible( 'the question' );
		await admin.picture( 'direct-take-back' );
		await page.keyboard.press( 'Escape' );
		await soon( 'the focus returns to the button', async () => 'Take back…' === await page.evaluate( () => document.activeElement.textContent ) );
		await admin.button( 'Take back…' ).click();
		await dialog.getByRole( 'button', { name: 'Take back' } ).click();
		await page.getByText( '1 file was restored to its state before the change.' ).first().waitFor();
		await soon( 'the focus is at the result', () => page.evaluate( () => document.activeElement.classList.contains( 'notice-success' ) ) );
		same( original, read( 'sample.php' ), 'the file' );
		await soon( 'the site is as before', async () => 'helo' === await greeting() );
		await soon( 'the state follows', async () => 'rolled back' === await state() );
		same( [ 'taken back', 'applied' ], await events(), 'history' );
		same( 0, await admin.button( 'Take back…' ).count(), 'nothing is left to take back' );
		await admin.accessible( 'a bundle that was taken back' );
		await admin.picture( 'direct-taken-back' );
	} );

	await test( 'direct: a file that changed since the apply is listed and left, and the other one is restored', async () => {
		await admin.open( '#/bundles/' + run );
		await admin.button( 'Choose all' ).click();
		await admin.button( 'Approve and apply…' ).click();
		await dialog.getByRole( 'button', { name: 'Approve and apply' } ).click();
		await page.getByText( '2 files were written.' ).first().waitFor();
		await soon( 'the state follows', async () => 'applied' === await state() );
		same( 0, await admin.button( 'Approve and apply…' ).count(), 'an applied bundle has no approval button' );
		writeFileSync( plugin + '/inc/more.php', '<?php // mine\n' );
		await admin.button( 'Take back…' ).click();
		await dialog.getByRole( 'button', { name: 'Take back' } ).click();
		await page.getByText( 'Left as they are:' ).waitFor();
		holds( 'the conflict is named', /inc\/more\.php/.test( await admin.text( '.wp-codebox-result .notice-warning' ) ) );
		same( [ original, '<?php // mine\n' ], [ read( 'sample.php' ), read( 'inc/more.php' ) ], 'files' );
		await soon( 'the state follows', async () => 'applied in part' === await state() );
		await admin.accessible( 'a roll back with a conflict' );
		await admin.picture( 'direct-conflict' );
		writeFileSync( plugin + '/inc/more.php', "<?php\n\nfunction sample_more() {\n\treturn 'moore';\n}\n" );
		await admin.unharmed( 'take back' );
	} );

	await test( 'direct: when the site got worse, the result shows the pages before and after, and the files are as before', async () => {
		await admin.open();
		const broken = await admin.bundle( 'break' );
		await admin.open( '#/bundles/' + broken.run );
		await admin.button( 'Choose all' ).click();
		await admin.button( 'Approve and apply…' ).click();
		await dialog.getByRole( 'button', { name: 'Approve and apply' } ).click();
		await page.getByText( 'Pages of the site work worse than before the change, so every file was restored.' ).waitFor();
		const rows = await page.locator( '.wp-codebox-result .wp-codebox-table tbody tr' ).allInnerTexts();
		holds( `the first page got worse: ${ rows }`, /front page\s+200\s+500, error message of WordPress\s+worse/.test( rows[ 0 ] ) && rows.length >= 4 );
		same( original, read( 'sample.php' ), 'the file' );
		await soon( 'the site works', async () => 'helo' === await greeting() );
		await soon( 'the state follows', async () => 'rolled back' === await state() );
		same( [ 'the apply failed' ], await events(), 'history' );
		await admin.accessible( 'a change that made the site worse' );
		await admin.picture( 'direct-worse' );
	} );

	await test( 'direct: the history of all bundles has a tab, newest first, with who, files and a link to the bundle', async () => {
		await admin.open( '#/bundles' );
		await page.getByRole( 'link', { name: 'History', exact: true } ).click();
		await page.getByRole( 'heading', { name: 'History', exact: true } ).waitFor();
		const what = await page.locator( '.wp-codebox-history td[data-column=What]' ).allInnerTexts();
		same( [ 'the apply failed', 'taken back in part', 'applied', 'taken back', 'applied' ], what.slice( 0, 5 ), 'entries' );
		const row = page.locator( '.wp-codebox-history tbody tr' ).nth( 4 );
		holds( 'the row has who, file and adapter', /admin[\s\S]*sample\.php[\s\S]*codebox-direct/.test( await row.innerText() ) );
		await admin.accessible( 'the history of all bundles' );
		await admin.picture( 'direct-history' );
		await row.getByRole( 'link' ).click();
		await page.waitForURL( ( url ) => url.hash === '#/bundles/' + run );
	} );

	await test( 'direct: files that programs run by themselves are named with the reason, declining writes nothing, and accepting needs a check of its own', async () => {
		await admin.open();
		const sensitive = await admin.bundle( 'sensitive' );
		await admin.open( '#/bundles/' + sensitive.run );
		await admin.button( 'Choose all' ).click();
		const confirm = dialog.getByRole( 'button', { name: 'Approve and apply' } );
		const ask = async () => {
			await admin.button( 'Approve and apply…' ).click();
			await dialog.waitFor();
			same( true, await confirm.isDisabled(), 'the button without the check' );
		};
		const there = () => [ '.user.ini', 'readme.txt' ].map( ( name ) => existsSync( plugin + '/' + name ) );
		await ask();
		const named = await dialog.locator( '.wp-codebox-sensitive li' ).allInnerTexts();
		holds( `only the file that runs by itself is named, with the reason: ${ named }`, 1 === named.length && /sample\/\.user\.ini[\s\S]*The web server or PHP obeys this file in every request to its directory\./.test( named[ 0 ] ) );
		await dialog.getByRole( 'checkbox' ).check();
		await dialog.getByRole( 'button', { name: 'Back' } ).click();
		await soon( 'the focus returns to the button', async () => 'Approve and apply…' === await page.evaluate( () => document.activeElement.textContent ) );
		await ask();
		await page.keyboard.press( 'Escape' );
		await soon( 'Escape closes the dialog', async () => 0 === await dialog.count() );
		same( [ [ false, false ], 'open', 0 ], [ there(), await state(), await page.locator( '.wp-codebox-result' ).getByText( 'written' ).count() ], 'nothing is applied after both ways to decline' );
		const history = await admin.ability( 'get-artifact', { artifact_id: sensitive.run } );
		same( [], history.history, 'no decision is recorded' );
		await ask();
		await dialog.getByRole( 'checkbox' ).focus();
		await page.keyboard.press( 'Enter' );
		same( [ true, false ], [ await dialog.isVisible(), existsSync( plugin + '/.user.ini' ) ], 'Enter does not confirm' );
		await admin.accessible( 'the second confirmation' );
		await admin.picture( 'direct-sensitive' );
		await dialog.getByLabel( CONFIRM ).check();
		same( false, await confirm.isDisabled(), 'the button with the check' );
		await confirm.click();
		await page.getByText( '2 files were written.' ).first().waitFor();
		same( true, existsSync( plugin + '/.user.ini' ), 'the file' );
		await soon( 'the state follows', async () => 'applied' === await state() );
		await admin.button( 'Discard…' ).click();
		holds( 'the dialog warns that files are applied', ( await dialog.innerText() ).includes( 'Files of this bundle are applied.' ) );
		await page.keyboard.press( 'Escape' );
		await admin.button( 'Take back…' ).click();
		await dialog.getByRole( 'button', { name: 'Take back' } ).click();
		await page.getByText( '2 files were restored to their state before the change.' ).first().waitFor();
		same( false, existsSync( plugin + '/.user.ini' ), 'the file' );
		rmSync( plugin + '/.user.ini', { force: true } );
		restored();
		await admin.unharmed( 'direct apply' );
	} );

	await test( 'direct: a file that programs run by themselves needs the same check when another plugin applies it', async () => {
		toggle();
		await admin.open();
		const sensitive = await admin.bundle( 'sensitive' );
		const files = [ '.user.ini', 'readme.txt' ].map( ( name ) => '/wordpress/wp-content/plugins/sample/' + name );
		const refused = await page.evaluate( async ( input ) => {
			try {
				return await window.wpCodebox.api.call( 'apply-approved-artifact', input );
			} catch ( error ) {
				return error.code;
			}
		}, { artifact_id: sensitive.run, approved_files: files } );
		same( [ 'wp_codebox_apply_confirmation_missing', false ], [ refused, existsSync( plugin + '/.user.ini' ) ], 'an apply without the confirmation' );
		await admin.open( '#/bundles/' + sensitive.run );
		await admin.button( 'Choose all' ).click();
		await admin.button( 'Approve and apply…' ).click();
		const confirm = dialog.getByRole( 'button', { name: 'Approve and apply' } );
		await dialog.waitFor();
		same( true, await confirm.isDisabled(), 'the button without the check' );
		await dialog.getByLabel( CONFIRM ).check();
		await confirm.click();
		await page.getByText( '2 files were handed to the site.' ).first().waitFor();
		same( true, existsSync( plugin + '/.user.ini' ), 'the file' );
		for ( const name of [ '.user.ini', 'readme.txt' ] ) {
			rmSync( plugin + '/' + name );
		}
		await admin.unharmed( 'another plugin applies' );
	} );

	await test( 'direct: with a git repository the approved change is committed to a branch, and the screen says that the site keeps its files', async () => {
		const repository = process.env.TMPDIR + '/repository';
		const git = ( ...words ) => execFileSync( 'git', [ '-C', repository, '-c', 'user.name=Tester', '-c', 'user.email=tester@example.org', ...words ], { encoding: 'utf8' } ).trim();
		cpSync( plugin, repository + '/plugins/sample', { recursive: true } );
		git( 'init', '-q', '-b', 'main' );
		git( 'add', '.' );
		git( 'commit', '-q', '-m', 'Start' );
		toggle( { apply: 'none', git: repository } );
		await admin.open();
		const made = await admin.bundle( 'quick' );
		await admin.open( '#/bundles/' + made.run );
		holds( 'it is said who applies', ( await admin.words() ).includes( 'Codebox commits the approved files to a branch of the git repository in its settings.' ) );
		await admin.button( 'Choose all' ).click();
		await admin.button( 'Approve and apply…' ).click();
		await dialog.waitFor();
		const asked = await dialog.innerText();
		same( [ true, true, false ], [ 'Codebox commits these files', 'The site keeps its files.', 'are written to' ].map( ( words ) => asked.includes( words ) ), 'what the dialog says' );
		await admin.accessible( 'the approval of a commit' );
		await admin.picture( 'direct-git-dialog' );
		await dialog.getByRole( 'button', { name: 'Approve and apply' } ).click();
		await page.getByText( /files were committed on the branch codebox\/run_/ ).first().waitFor();
		same( [ 'plugins/sample/inc/more.php', 'plugins/sample/sample.php' ], git( 'diff', '--name-only', 'main', 'codebox/' + made.run ).split( '\n' ), 'files of the branch' );
		same( [ original, 'helo' ], [ read( 'sample.php' ), await greeting() ], 'the site' );
		await soon( 'the state follows', async () => 'applied' === await state() );
		same( [ [ 'applied' ], 0 ], [ await events(), await admin.button( 'Take back…' ).count() ], 'history, and nothing to take back' );
		holds( 'the page says where the files are', ( await admin.words() ).includes( '2 of 2 changed files are committed on a git branch; the files of this site are as before.' ) );
		// The branch may be deleted later, so both files can be approved again.
		same( 2, await page.locator( '.wp-codebox-files input' ).count(), 'check boxes' );
		await admin.picture( 'direct-git-done' );
		toggle();
		await admin.unharmed( 'a commit' );
	} );
}
