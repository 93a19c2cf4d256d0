document.documentElement.dataset.banner = 'script';
