/**
 * Access to the screen by capability, and the screen with an ability, the extension or its own files missing.
 */
import { renameSync } from 'node:fs';
import { holds, same, site, test, toggle, User } from './harness.mjs';

const menu = ( page ) => page.locator( '#adminmenu a[href="tools.php?page=wp-codebox"]' ).count();
const PAGE = '/wp-admin/tools.php?page=wp-codebox';

export default async function ( browser, admin ) {
	const { page } = admin;

	await test( 'access: an administrator sees the screen, and an editor does not', async () => {
		await page.goto( site.url + '/wp-admin/tools.php' );
		same( 1, await menu( page ), 'in the menu of an administrator' );
		await admin.open();
		same( 'Runs', await admin.text( '.wp-codebox-view h2' ), 'the screen of an administrator' );
		const editor = await User.login( browser, 'editor' );
		await editor.page.goto( site.url + '/wp-admin/tools.php' );
		same( 0, await menu( editor.page ), 'in the menu of an editor' );
		const answer = await editor.page.goto( site.url + PAGE );
		same( 403, answer.status(), 'status of the page by its address' );
		same( 0, await editor.page.locator( '#wp-codebox-screen' ).count(), 'the screen of an editor' );
		same( 403, ( await editor.rest( 'list-artifacts' ) ).status, 'an ability over REST for an editor' );
		same( 200, ( await admin.rest( 'list-artifacts' ) ).status, 'an ability over REST for an administrator' );
		await editor.context.close();
	} );

	await test( 'access: a user who may only run sees no bundles, and a user without capabilities sees no page', async () => {
		toggle( { narrow: [ 'wp_codebox_review', 'wp_codebox_apply' ] } );
		await admin.open();
		same( [ 'Runs', 'New task' ], await page.locator( '.nav-tab' ).allTextContents(), 'tabs of a user who may only run' );
		await admin.go( '#/bundles' );
		await page.locator( '.wp-codebox-error' ).waitFor();
		toggle( { narrow: [ 'wp_codebox_run', 'wp_codebox_review', 'wp_codebox_apply' ] } );
		await page.goto( site.url + '/wp-admin/tools.php' );
		same( 0, await menu( page ), 'in the menu' );
		toggle();
		await admin.open();
		same( [ 'Runs', 'Bundles', 'History', 'New task' ], await page.locator( '.nav-tab' ).allTextContents(), 'tabs of an administrator' );
	} );

	await test( 'access: the settings page reports saved and refused values', async () => {
		await page.goto( site.url + '/wp-admin/options-general.php' );
		await page.locator( '#adminmenu a', { hasText: /^Codebox$/ } ).last().click();
		await page.getByRole( 'heading', { name: 'Limits' } ).waitFor();
		same( [ 'Settings' ], await page.locator( '#adminmenu > .wp-has-current-submenu > .wp-menu-name, #adminmenu > .wp-has-current-submenu > a .wp-menu-name' ).allInnerTexts(), 'the menu that is open' );
		const providers = page.locator( '[name=wp_codebox_providers]' );
		for ( const [ value, said ] of [
			[ '{"own":{"api":"openai-chat","base_url":"https://models.example/v1","key_env":"AWS_SECRET_ACCESS_KEY"}}', 'The key AWS_SECRET_ACCESS_KEY may not go to the base URL of this provider.' ],
			[ '', 'Settings saved.' ],
		] ) {
			await providers.fill( value );
			await page.getByRole( 'button', { name: 'Save Changes' } ).click();
			await page.locator( '.settings-error', { hasText: said } ).waitFor();
			same( 1, await page.locator( '.settings-error' ).count(), said );
		}
	} );

	await test( 'access: the screen filter removes the menu entry unless it returns true', async () => {
		for ( const answer of [ false, 1 ] ) {
			toggle( { screen: answer } );
			await page.goto( site.url + '/wp-admin/tools.php' );
			same( 0, await menu( page ), `in the menu with ${ answer }` );
		}
		toggle();
		await page.goto( site.url + '/wp-admin/tools.php' );
		same( 1, await menu( page ), 'in the menu without the filter' );
	} );

	await test( 'access: REST and the site work when the files of the screen are deleted', async () => {
		const root = site.path + '/wp-content/plugins/wp-codebox/';
		const parts = [ [ 'includes/Screen', 'Screen' ], [ 'assets/screen', 'screen' ] ];
		const away = ( [ part, name ] ) => renameSync( root + part, process.env.TMPDIR + '/away-' + name );
		const back = ( [ part, name ] ) => renameSync( process.env.TMPDIR + '/away-' + name, root + part );
		parts.forEach( away );
		try {
			const answer = await page.goto( site.url + '/wp-admin/tools.php' );
			same( 200, answer.status(), 'the tools page' );
			same( 0, await menu( page ), 'in the menu' );
			same( true, ( await admin.rest( 'list-artifacts' ) ).body.success, 'an ability over REST' );
			holds( 'the home page of the site is served', ( await ( await fetch( site.url ) ).text() ).includes( '<html' ) );
		} finally {
			parts.forEach( back );
		}
		await admin.open();
		same( 'Runs', await admin.text( '.wp-codebox-view h2' ), 'the screen after its directories are restored' );
	} );

	await test( 'access: the screen names missing abilities and hides the tabs that need them', async () => {
		toggle( { hide: [ 'wp-codebox/list-runs', 'wp-codebox/run-agent-task' ] } );
		await admin.open( '' );
		same( [ 'Bundles', 'History' ], await page.locator( '.nav-tab' ).allTextContents(), 'tabs' );
		same( 'Bundles', await admin.text( '.wp-codebox-view h2' ), 'the first available view' );
		await admin.go( '#/runs' );
		await page.locator( '.wp-codebox-error' ).waitFor();
		const words = await admin.words();
		holds( `sentence and code are shown: ${ words }`, words.includes( 'This site does not offer the ability wp-codebox/list-runs.' ) && words.includes( 'rest_ability_not_found' ) );
		await admin.accessible( 'an error' );
		toggle();
	} );

	await test( 'access: without the extension the screen tells how to install it', async () => {
		const bare = await User.login( browser, 'admin', {}, process.env.BARE_URL );
		await bare.open( '#/bundles' );
		await bare.page.locator( '.wp-codebox-error' ).waitFor();
		const words = await bare.words();
		for ( const expected of [ 'The PHP extension wp_codebox is not loaded', 'wp_codebox.so', 'extension=wp_codebox.so', 'wp_codebox_extension_missing' ] ) {
			holds( `the screen shows: ${ expected }\n${ words }`, words.includes( expected ) );
		}
		await bare.accessible( 'a missing extension' );
		await bare.picture( 'extension-missing' );
		await bare.unharmed( 'a missing extension' );
		await bare.context.close();
	} );

	await test( 'access: in a right-to-left language the screen is laid out from right to left', async () => {
		toggle( { rtl: true } );
		await admin.open( '#/new' );
		same( 'rtl', await page.evaluate( () => document.documentElement.dir || document.body.dir || getComputedStyle( document.body ).direction ), 'direction' );
		await admin.picture( 'rtl-new-task' );
		toggle();
	} );
}
